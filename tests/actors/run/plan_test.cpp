// plan.json has the choices of all workers: a resumed run and a replay compute by it.
#include <atomic>

#include <gtest/gtest.h>

#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

/// The CPU backend; counts the replicas for training that were free to choose by measurement.
class CountingBackend final : public nn::Backend {
 public:
  std::string name() const override { return backend().name(); }
  nn::Capabilities capabilities() const override { return backend().capabilities(); }
  const core::Kernels& kernels() const noexcept override { return backend().kernels(); }
  core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                     const nn::CompileOptions& options) override {
    if (options.training) ++(options.plan == nullptr && options.measure ? choosing_ : other_);
    return backend().compile(graph, options);
  }
  int choosing() const { return choosing_; }
  int other() const { return other_; }

 private:
  std::atomic<int> choosing_ = 0;
  std::atomic<int> other_ = 0;
};

void expect_choices(const std::vector<std::string>& options, int choosing) {
  SmallRun run(options);
  CountingBackend counting;
  const auto end = actors::run_training(
      {.settings = *run.settings(), .resume = {}, .console = {.mode = report::ConsoleOptions::Mode::quiet}}, counting,
      {});
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(counting.choosing(), choosing);
  EXPECT_GE(counting.choosing() + counting.other(), 3);
}

TEST(RunPlan, OneWorkerOfARunMeasuresAndTheOthersTakeItsChoices) { expect_choices({"cluster.workers=3"}, 1); }

TEST(RunPlan, SitesTakeTheChoicesOfOneReplica) { expect_choices({"cluster.workers=3", "exchange.endpoint=inproc"}, 1); }

TEST(RunPlan, NothingIsMeasuredWithSeveralBatchSizesOrByTheFixedRule) {
  expect_choices({"cluster.workers=3", "data.batch=[20, 20, 10]", "strategy.name=easgd"}, 0);
  expect_choices({"cluster.workers=3", "cluster.kernels=fixed"}, 0);
}

}  // namespace
}  // namespace troupe::tests
