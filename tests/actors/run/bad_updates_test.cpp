// Row 24 of the faults: one worker's gradient is NaN, infinite or 10³⁸. The model never holds a number that is not finite. The gradient is
// counted; after too many in a row the run ends with an error that names the worker.
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/wait.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;

/// Which of the bad worker's steps yield bad numbers, and where.
struct Fault {
  float value = std::numeric_limits<float>::quiet_NaN();
  std::uint64_t first = 5, count = 3;  // of its steps
  bool in_parameters = false;          // else in the gradient
};

/// The steps that the faulty replica has begun. The others follow it through these: they would take all batches if its thread began late.
struct Lead {
  static constexpr std::uint64_t kSteps = 9;
  std::atomic<std::uint64_t> begun = 0;
};

/// Forwards to a sound replica and adds the faults, or follows the one with faults.
class Faulty final : public nn::Replica {
 public:
  Faulty(std::unique_ptr<nn::Replica> sound, const Fault& fault, std::shared_ptr<Lead> lead, bool follows)
      : sound_(std::move(sound)), fault_(fault), lead_(std::move(lead)), follows_(follows) {}
  const nn::Graph& graph() const noexcept override { return sound_->graph(); }
  std::int64_t batch() const noexcept override { return sound_->batch(); }
  const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return sound_->layout(); }
  core::Span parameters() noexcept override { return sound_->parameters(); }
  core::Span gradients() noexcept override { return sound_->gradients(); }
  core::Span statistics() noexcept override { return sound_->statistics(); }
  void parameters_written() noexcept override { sound_->parameters_written(); }
  std::uint64_t parameters_version() const noexcept override { return sound_->parameters_version(); }
  const std::vector<nn::Bucket>& buckets() const noexcept override { return sound_->buckets(); }
  core::Result<nn::StepResult> step(const nn::Batch& batch, const std::function<void(int)>& ready) override {
    if (follows_) {
      const auto begun = std::min(++steps_, Lead::kSteps);
      EXPECT_TRUE(eventually([&] { return lead_->begun >= begun; })) << "the faulty worker does not come to its step";
      return sound_->step(batch, ready);
    }
    const bool bad = steps_ >= fault_.first && steps_ - fault_.first < fault_.count;
    lead_->begun = ++steps_;
    auto result = sound_->step(batch, [&](int bucket) {
      const auto& range = buckets()[static_cast<std::size_t>(bucket)];
      if (bad && !fault_.in_parameters) gradients()[range.offset + range.count / 2] = fault_.value;
      ready(bucket);
    });
    if (bad && fault_.in_parameters) parameters()[parameters().size() / 2] = fault_.value, parameters_written();
    return result;
  }
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override { sound_->apply(step, state); }
  core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override { return sound_->evaluate(batch); }
  std::span<const float> outputs() const noexcept override { return sound_->outputs(); }
  const nn::Plan& plan() const noexcept override { return sound_->plan(); }
  std::size_t workspace_bytes() const noexcept override { return sound_->workspace_bytes(); }

 private:
  std::unique_ptr<nn::Replica> sound_;
  const Fault fault_;
  const std::shared_ptr<Lead> lead_;
  const bool follows_;
  std::uint64_t steps_ = 0;
};

/// The replica with two threads is the faulty one.
class FaultyBackend final : public nn::Backend {
 public:
  explicit FaultyBackend(const Fault& fault) : fault_(fault) {}
  std::string name() const override { return backend().name(); }
  nn::Capabilities capabilities() const override { return backend().capabilities(); }
  const core::Kernels& kernels() const noexcept override { return backend().kernels(); }
  core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                     const nn::CompileOptions& options) override {
    auto sound = backend().compile(graph, options);
    if (!sound || !options.training) return sound;
    return std::make_unique<Faulty>(std::move(*sound), fault_, lead_, options.threads != 2);
  }

 private:
  Fault fault_;
  std::shared_ptr<Lead> lead_ = std::make_shared<Lead>();
};

class BadUpdates : public ::testing::Test {
 protected:
  /// Three workers; the second one is faulty.
  experiment::RunEnd trained(const Fault& fault, Options options) {
    options.insert(options.begin(), {"cluster.workers=3", "cluster.servers=2", "cluster.threads_per_worker=[1, 2, 1]",
                                     "data.train_samples=4800", "run.checkpoint_every=1 epoch", "train.lr=0.02",
                                     "cluster.synthetic_step_ms=1"});  // every worker gets its share of the batches
    run_.emplace(std::move(options));
    FaultyBackend bad(fault);
    return actors::run_training(
        {.settings = *run_->settings(), .resume = {}, .console = {.mode = report::ConsoleOptions::Mode::quiet}}, bad,
        {});
  }
  [[nodiscard]] std::size_t not_finite() const {
    std::size_t found = 0;
    for (const auto& [name, values] : run_->tensors())
      for (const float value : values) found += std::isfinite(value) ? 0 : 1;
    return found;
  }
  [[nodiscard]] std::string metrics() const {
    std::ifstream file(run_->run_directory() / "metrics.jsonl");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::optional<SmallRun> run_;
};

TEST_F(BadUpdates, BadGradientIsNotApplied) {
  for (const auto& row : strategies::registry()) {
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e38F}) {
      SCOPED_TRACE(testing::Message() << row.name << ": " << value);
      Options options{"strategy.name=" + row.name};
      if (row.name == "eamsgd") options.emplace_back("train.optimizer=nesterov");
      const auto end = trained({.value = value}, options);
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_EQ(end.summary.refused, 3U);
      EXPECT_EQ(end.summary.per_worker.at(1).refused, 3U);
      EXPECT_EQ(not_finite(), 0U);
      EXPECT_LT(end.summary.test_loss, 2.32) << "who only guesses has 2.303";
      EXPECT_NE(metrics().find("worker 1, step 5: its gradient held numbers"), std::string::npos);
    }
  }
}

TEST_F(BadUpdates, ConsecutiveBadGradientsEndTheRunAndNameTheWorker) {
  for (const std::string strategy : {"easgd", "bsp", "gossip", "mixed"}) {
    SCOPED_TRACE(strategy);
    const auto end = trained({.count = 1000}, {"strategy.name=" + strategy, "train.max_bad_updates=4"});
    ASSERT_TRUE(end.failed);
    EXPECT_EQ(core::exit_code(end.error.code), 70) << end.error.message;
    EXPECT_NE(end.error.message.find("worker 1, step 8: its gradient"), std::string::npos) << end.error.message;
    EXPECT_NE(end.error.message.find("train.max_bad_updates = 4"), std::string::npos) << end.error.message;
  }
}

/// The parameters of one worker become bad: its pushes are refused, and an elastic worker continues from the centre. (With momentum the
/// velocity would keep the bad numbers and spoil every later step.)
TEST_F(BadUpdates, BadPushIsRefused) {
  for (const Options& more :
       std::vector<Options>{{}, {"exchange.endpoint=inproc"}, {"exchange.endpoint=inproc", "exchange.wire=bf16"}}) {
    for (const std::string strategy : {"easgd", "sync_easgd"}) {
      SCOPED_TRACE(strategy + ::testing::PrintToString(more));
      Options options{"strategy.name=" + strategy, "strategy.tau=1", "train.optimizer=sgd"};
      options.insert(options.end(), more.begin(), more.end());
      const auto end = trained({.count = 3, .in_parameters = true}, options);
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_EQ(end.summary.per_worker.at(1).refused, 3U) << "by the one shard that has the number";
      EXPECT_EQ(end.summary.exchange_dropped, 3U);
      EXPECT_EQ(not_finite(), 0U);
      EXPECT_NE(metrics().find("worker 1: what it pushed to shard"), std::string::npos);
    }
  }
}

TEST_F(BadUpdates, ConsecutiveRefusedPushesEndTheRun) {
  for (const std::string endpoint : {"auto", "inproc"}) {
    SCOPED_TRACE(endpoint);
    const auto end =
        trained({.count = 1000, .in_parameters = true},
                {"strategy.name=easgd", "strategy.tau=1", "train.max_bad_updates=4", "exchange.endpoint=" + endpoint});
    ASSERT_TRUE(end.failed);
    EXPECT_EQ(core::exit_code(end.error.code), 70) << end.error.message;
    EXPECT_NE(end.error.message.find("worker 1: what it pushed to shard"), std::string::npos) << end.error.message;
  }
}

}  // namespace
}  // namespace troupe::tests
