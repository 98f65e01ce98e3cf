// What strategies make of guests' numbers, against the formulas. The model is that of tests/guest/programs/scripted_guest.cpp, in double here
// and float there.
#include "tests/apps/launch/launched.hpp"

namespace troupe::apps {
namespace {

constexpr double kTolerance = 1e-5;  // float32 of a few hundred steps, of values below 2
constexpr double kRate = 0.1;        // the program's

class LaunchedArithmetic : public Launched {};

std::vector<double> initial() { return {0, 0.5, 1, 1.5}; }

void step(std::vector<double>& p, const std::vector<int>& samples) {
  for (int j = 0; j < 4; ++j)
    p[static_cast<std::size_t>(j)] -= kRate * gradient(j, p[static_cast<std::size_t>(j)], samples);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], expected[j], kTolerance) << j;
}

// One worker of bsp is the program alone.
TEST_F(LaunchedArithmetic, OneWorkerIsTheProgramAlone) {
  launch({"--workers", "1", "--strategy", "bsp"}, {"samples=40", "batch=4", "epochs=3", log_word()});
  auto p = initial();
  const auto steps = steps_of("0");
  ASSERT_EQ(steps.size(), 30U);
  for (const auto& samples : steps) step(p, samples);
  expect_near(parameters(), p);
}

// Two guests with batches of 4 compute what one does with batches of 8: to the rounding of float32, for the sums have another order.
TEST_F(LaunchedArithmetic, TwoWorkersOfBspAreOneWithTwiceTheBatch) {
  launch({"--workers", "2", "--strategy", "bsp"}, {"samples=64", "batch=4", "epochs=5"});
  const auto two = parameters();
  launch({"--workers", "1", "--strategy", "bsp"}, {"samples=64", "batch=8", "epochs=5", log_word()});
  const auto one = parameters();
  expect_near(two, one);
  auto p = initial();
  for (const auto& samples : steps_of("0")) step(p, samples);
  expect_near(one, p);
}

// Of plain SGD the mean of the weights is the step of the mean gradient, and the sum of two updates that of twice the rate.
TEST_F(LaunchedArithmetic, WhatBspCombinesMayBeUpdatesOrWeights) {
  launch({"--workers", "2", "--strategy", "bsp"}, {"samples=64", "batch=4", "epochs=2"});
  const auto gradients = parameters();
  for (const auto& [combine, rate] : {std::pair{"updates", "lr=0.05"}, std::pair{"weights", "lr=0.1"}}) {
    launch({"--workers", "2", "--strategy", "bsp", "--set", std::string("strategy.combine=") + combine},
           {"samples=64", "batch=4", "epochs=2", rate});
    expect_near(parameters(), gradients);
  }
}

// Every 3 steps, with d = x − c of before: x −= 0.2 d, c += 0.2 d (Zhang et al. 2015).
TEST_F(LaunchedArithmetic, EasgdIsItsFormula) {
  launch({"--workers", "1", "--strategy", "easgd", "--set", "strategy.tau=3", "--set", "strategy.alpha=0.2"},
         {"samples=36", "batch=4", "epochs=4", log_word()});
  auto x = initial(), c = initial();
  const auto steps = steps_of("0");
  ASSERT_EQ(steps.size(), 36U);
  for (std::size_t t = 0; t < steps.size(); ++t) {
    step(x, steps[t]);
    if ((t + 1) % 3 != 0) continue;
    for (std::size_t j = 0; j < 4; ++j) {
      const double d = x[j] - c[j];
      x[j] -= 0.2 * d;
      c[j] += 0.2 * d;
    }
  }
  expect_near(parameters(), c);  // of easgd the centre is the model
}

// Every 2 steps both go on from their mean. Rounds are those of their own steps, so each log has its worker's samples in order.
TEST_F(LaunchedArithmetic, LocalSgdIsTheMean) {
  launch({"--workers", "2", "--strategy", "local_sgd", "--set", "strategy.tau=2"},
         {"samples=64", "batch=4", "epochs=2", log_word()});
  const auto first = steps_of("0"), second = steps_of("1");
  ASSERT_EQ(first.size(), 16U);
  ASSERT_EQ(second.size(), 16U);
  auto a = initial(), b = initial();
  for (std::size_t t = 0; t < first.size(); ++t) {
    step(a, first[t]);
    step(b, second[t]);
    if ((t + 1) % 2 != 0) continue;
    for (std::size_t j = 0; j < 4; ++j) a[j] = b[j] = (a[j] + b[j]) / 2;
  }
  expect_near(parameters(), a);
}

// Values that lie elsewhere, as on a GPU, are the same values.
TEST_F(LaunchedArithmetic, MirrorsChangeNothing) {
  for (const auto* strategy : {"bsp", "easgd", "local_sgd", "downpour", "ssp", "diloco"}) {
    std::vector<std::vector<double>> found;
    for (const auto* mirrors : {"mirrors=0", "mirrors=1"}) {
      Words options{"--workers", "1", "--strategy", strategy};
      if (strategy != std::string("downpour") && strategy != std::string("ssp"))
        options.insert(options.end(), {"--set", "strategy.tau=3"});
      launch(options, {"samples=36", "batch=4", "epochs=2", mirrors});
      found.push_back(parameters());
    }
    EXPECT_EQ(found[0], found[1]) << strategy;
    expect_replays();
  }
}

// Each sample exactly once an epoch, over all workers.
TEST_F(LaunchedArithmetic, EverySampleIsTrainedOncePerEpoch) {
  launch({"--workers", "3", "--strategy", "easgd", "--set", "strategy.tau=2"},
         {"samples=60", "batch=4", "epochs=2", log_word()});
  std::map<int, int> times;
  for (const auto* worker : {"0", "1", "2"})
    for (const auto& samples : steps_of(worker))
      for (const int sample : samples) ++times[sample];
  EXPECT_EQ(times.size(), 60U);
  for (const auto& [sample, count] : times) EXPECT_EQ(count, 2) << sample;
}

}  // namespace
}  // namespace troupe::apps
