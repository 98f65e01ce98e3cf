#include "experiment/sweep/parzen.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "tests/experiment/sweep/spaces.hpp"

namespace troupe::sweep {
namespace {

const Space& mixed() {
  static const Space space({real("lr", 0.001, 1, true), integer("tau", 1, 4), choice("c", {"1", "2", "3"})});
  return space;
}
const std::vector<Point> kObserved{{0.01, 2.0, 0.0}, {0.1, 4.0, 2.0}};

/// Python, with n = 2, d = 3, s = max(0.2 · 2^(-1/7), 1 / (2 + 2)) = 0.25, u(lr) = log(lr / 0.001) / log(1000), cells of tau
/// [(k - 1) / 4, k / 4], w = 1/3 and Φ from math.erf:
///   fr(u, mu, s) = phi((u - mu) / s) / s / (Phi((1 - mu) / s) - Phi(-mu / s))
///   fi(k, mu, s) = (Phi((k/4 - mu) / s) - Phi(((k-1)/4 - mu) / s)) / (Phi((1 - mu) / s) - Phi(-mu / s))
///   density = (sum over observed fr · fi · ((same choice) + w) / (1 + 3 w)  +  fr(u, 1/2, 1) · fi(tau, 1/2, 1) / 3) / 3
TEST(Parzen, DensitiesAreThoseOfTheDefinition) {
  const Parzen parzen(mixed(), kObserved);
  EXPECT_DOUBLE_EQ(parzen.deviation(), 0.25);
  EXPECT_NEAR(parzen.log_density({0.01, 2.0, 0.0}), -1.6356287307027177, 1e-12);
  EXPECT_NEAR(parzen.log_density({0.5, 1.0, 1.0}), -3.56135916845871, 1e-12);
  EXPECT_NEAR(parzen.log_density({0.1, 3.0, 2.0}), -1.7317929406370165, 1e-12);
  EXPECT_NEAR(parzen.marginal(1, 4), 0.2871925240327415, 1e-12);
}

TEST(Parzen, TheMassOfAllPointsIsOne) {
  for (const auto& observed : {std::vector<Point>{}, kObserved}) {
    const Parzen parzen(mixed(), observed);
    double mass = 0;
    constexpr int kSteps = 500;
    for (int i = 0; i < kSteps; ++i)
      for (double tau = 1; tau <= 4; ++tau)
        for (double c = 0; c < 3; ++c)
          mass += std::exp(parzen.log_density({0.001 * std::pow(1000, (i + 0.5) / kSteps), tau, c})) / kSteps;
    EXPECT_NEAR(mass, 1, 1e-4);
  }
}

/// One of three kernels has no tau, so that it says of tau what the prior says.
TEST(Parzen, AnObservedPointSaysNothingOfAParameterThatItHasNot) {
  const auto space = conditional_space();
  const Parzen without(space, {{0.1, 0.0, std::nullopt}});
  const Parzen prior(space, {});
  for (double tau = 1; tau <= 64; tau *= 4) EXPECT_NEAR(without.marginal(2, tau), prior.marginal(2, tau), 1e-12);
  EXPECT_GT(without.marginal(1, 0), without.marginal(1, 1));
}

TEST(Parzen, SamplesAreInTheSpaceAndFollowTheDensity) {
  const Parzen parzen(mixed(), kObserved);
  core::Random random(1, core::Purpose::test, 0);
  std::map<std::pair<double, double>, double> counts;
  constexpr int kMany = 40000;
  for (int i = 0; i < kMany; ++i) {
    const auto point = parzen.sample(random);
    ASSERT_TRUE(mixed().contains(point));
    counts[{*point[1], *point[2]}] += 1.0 / kMany;
  }
  for (double tau = 1; tau <= 4; ++tau)
    for (double c = 0; c < 3; ++c) {
      double expected = 0;
      constexpr int kSteps = 200;
      for (int i = 0; i < kSteps; ++i)
        expected += std::exp(parzen.log_density({0.001 * std::pow(1000, (i + 0.5) / kSteps), tau, c})) / kSteps;
      const double deviation = std::sqrt(expected / kMany);
      EXPECT_NEAR((counts[{tau, c}]), expected, 5 * deviation) << tau << " " << c;
    }
}

TEST(Parzen, SamplesOfConditionalSpacesHaveWhatExists) {
  const auto space = conditional_space();
  const Parzen parzen(space, {{0.1, 0.0, std::nullopt}, {0.2, 1.0, 8.0}});
  core::Random random(1, core::Purpose::test, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(space.contains(parzen.sample(random)));
}

}  // namespace
}  // namespace troupe::sweep
