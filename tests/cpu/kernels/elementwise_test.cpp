// Each instruction set's kernels against the formulas in double precision.
#include "cpu/kernels/elementwise.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

constexpr std::int64_t kRows = 7;

class Kernels : public ::testing::TestWithParam<const Elementwise*> {};

TEST_P(Kernels, ExpRowsMatchesReference) {
  for (const std::int64_t columns : {1, 3, 10, 16, 33, 1000}) {
    auto z = random_floats(static_cast<std::size_t>(kRows * columns), 20.0, 1);
    z[0] = -200.0f;  // underflows next to any other value
    std::vector<float> e(z.size()), maxima(kRows), sums(kRows);
    GetParam()->exp_rows(z.data(), e.data(), maxima.data(), sums.data(), kRows, columns);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const float* row = z.data() + r * columns;
      double maximum = row[0];
      double sum = 0;
      for (std::int64_t c = 0; c < columns; ++c) maximum = std::max<double>(maximum, row[c]);
      EXPECT_EQ(maxima[static_cast<std::size_t>(r)], maximum);
      for (std::int64_t c = 0; c < columns; ++c) {
        const double want = std::exp(static_cast<double>(row[c] - static_cast<float>(maximum)));
        EXPECT_NEAR(e[static_cast<std::size_t>(r * columns + c)], want, 2e-7 * want + 1e-37);
        sum += want;
      }
      EXPECT_NEAR(sums[static_cast<std::size_t>(r)], sum, 1e-5 * sum);
    }
  }
}

TEST_P(Kernels, ExpRowsPassesNanOn) {
  std::vector<float> z{1.0f, std::numeric_limits<float>::quiet_NaN(), 2.0f};
  std::vector<float> e(3), maximum(1), sum(1);
  GetParam()->exp_rows(z.data(), e.data(), maximum.data(), sum.data(), 1, 3);
  EXPECT_TRUE(std::isnan(sum[0]));
}

TEST_P(Kernels, ActivationBackwardAndColumnSumsMatchReference) {
  const auto derivative = [](nn::Activation kind, double y) {
    return kind == nn::Activation::relu      ? (y > 0 ? 1.0 : 0.0)
           : kind == nn::Activation::sigmoid ? y * (1 - y)
                                             : 1 - y * y;
  };
  for (const auto kind : {nn::Activation::relu, nn::Activation::sigmoid, nn::Activation::tanh})
    for (const std::int64_t columns : {1, 10, 16, 100}) {
      const auto y = random_floats(static_cast<std::size_t>(kRows * columns), 0.5, 2);
      const auto dy = random_floats(y.size(), 1.0, 3);
      auto dz = dy;
      std::vector<float> bias(static_cast<std::size_t>(columns), 9.0f), sums(static_cast<std::size_t>(columns), 9.0f);
      GetParam()->activation_backward[static_cast<std::size_t>(kind)](y.data(), dz.data(), bias.data(), kRows, columns);
      GetParam()->column_sums(dz.data(), sums.data(), kRows, columns);
      for (std::int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (std::int64_t r = 0; r < kRows; ++r) {
          const auto at = static_cast<std::size_t>(r * columns + c);
          EXPECT_NEAR(dz[at], dy[at] * derivative(kind, y[at]), 1e-6);
          sum += dz[at];
        }
        EXPECT_NEAR(bias[static_cast<std::size_t>(c)], sum, 1e-5);
        EXPECT_EQ(bias[static_cast<std::size_t>(c)], sums[static_cast<std::size_t>(c)]);
      }
    }
}

TEST_P(Kernels, MultiplyInPlaceMatchesReference) {
  const auto a = random_floats(37, 1.0, 4);
  const auto b = random_floats(37, 1.0, 5);
  auto out = a;
  GetParam()->multiply(out.data(), b.data(), out.data(), out.size());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], a[i] * b[i]);
}

INSTANTIATE_TEST_SUITE_P(Variants, Kernels, ::testing::ValuesIn(elementwise_variants()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace troupe::cpu::testing
