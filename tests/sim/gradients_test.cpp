// Phantom workers that compute real gradients of a small model.
#include "sim/exchange/gradients.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/kernels.hpp"
#include "cpu/backend.hpp"
#include "experiment/state/checkpoint.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/hash.hpp"
#include "nn/layout.hpp"
#include "nn/optimizer.hpp"
#include "sim/forecast/forecast.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/folder.hpp"

namespace troupe::sim {
namespace {

constexpr const char* kConfig = R"(
[run]
epochs = 2
[model]
name = "mlp"
widths = [24]
activation = "relu"
[data]
name = "glyphs"
batch = 10
train_samples = 200
test_samples = 100
[train]
optimizer = "momentum"
lr = 0.1
momentum = 0.5
lr_policy = "polynomial"
[strategy]
name = "bsp"
[cluster]
workers = 3
)";
constexpr const char* kClusterOfGradients =
    "[hosts.node]\ncount = 8\nstep_ms = 4\nstep_sigma = 0.2\n[network]\nlatency_us = 50\n"
    "gbit_per_s = 1\n[failures]\ndetection_s = 0.01\nrejoin_s = 0.02\n";

nn::Backend& backend() {
  static const auto backend = cpu::make_backend();
  return *backend;
}

experiment::Settings settings_with(const std::vector<std::string>& overrides) {
  auto config = core::Config::parse(experiment::schema(), kConfig, "test", overrides);
  if (!config) throw std::logic_error(config.error().message);
  return experiment::resolve(std::move(*config)).value();
}

core::Result<Forecast> simulated(const std::vector<std::string>& overrides, nn::Backend* gradients = &backend(),
                                 const std::vector<std::string>& cluster = {}) {
  return forecast({.settings = settings_with(overrides),
                   .cluster = parse_cluster(kClusterOfGradients, "c.toml", cluster).value(),
                   .gradients = gradients});
}

/// BSP as in docs/strategies/bsp.md, in one loop: rounds of 3 · 10 of 200 samples, the last one across the epoch's end; the mean gradient
/// in rank order; v ← μ v − η ḡ; x ← x + v.
std::vector<float> serial_bsp() {
  const auto settings = settings_with({});
  const auto spec = experiment::build_run_spec(settings, true).value();
  core::HostAllocator allocator;
  const auto replica = backend().compile(*spec.graph, {.batch = 10, .seed = 1, .arenas = &allocator}).value();
  replica->import_canonical(*experiment::start_state(spec, nullptr).parameters);
  const auto x = replica->parameters();
  std::vector<float> v(x.size(), 0), sum(x.size());
  std::vector<float> images(10 * 784);
  std::vector<std::int32_t> labels(10);
  std::uint64_t index = 0;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t begin = 0; begin < 200; begin += 30) {
      const double position = epoch + static_cast<double>(begin) / 200;
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        const data::Lease lease{index++, epoch, (begin + 10 * rank) % 200, 10, position};
        EXPECT_TRUE(spec.source.train->build(lease, images, labels));
        replica->parameters_written();
        EXPECT_TRUE(replica->step({images, labels, lease.index, 10}, {}));
        for (std::size_t i = 0; i < x.size(); ++i)
          sum[i] = rank == 0 ? replica->gradients()[i] : sum[i] + replica->gradients()[i];
      }
      const auto lr = static_cast<float>(0.1 * (1 - position / 2));
      for (std::size_t i = 0; i < x.size(); ++i) {
        v[i] = 0.5F * v[i] - lr * (sum[i] / 3);
        x[i] += v[i];
      }
    }
  }
  std::vector<float> canonical(replica->layout()->canonical_floats());
  replica->export_canonical(canonical);
  return canonical;
}

TEST(GradientsInVirtualTime, BspEqualsASerialComputation) {
  const auto settings = settings_with({});
  const auto spec = experiment::build_run_spec(settings, true).value();
  const auto plain = simulated({});
  ASSERT_TRUE(plain) << plain.error().message;
  const auto serial = serial_bsp();
  // The model's score, computed from the serial parameters.
  core::HostAllocator allocator;
  const auto evaluator =
      backend().compile(*spec.graph, {.batch = 100, .arenas = &allocator, .training = false}).value();
  const auto score = experiment::evaluate(*evaluator, *spec.source.test, serial, {}).value();
  EXPECT_NEAR(plain->summary.test_loss, score.loss, 1e-5);
  EXPECT_EQ(plain->result.learned->test.top1, score.top1);
  ASSERT_EQ(plain->result.learned->epochs.size(), 2U);
  EXPECT_LT(plain->result.learned->epochs[1].train_loss, plain->result.learned->epochs[0].train_loss);
}

/// Counts its steps in the state that later ones depend on, as a loss scale does.
class Counting final : public nn::Replica {
 public:
  Counting(std::unique_ptr<nn::Replica> inner, std::vector<std::uint64_t>& begun_at)
      : inner_(std::move(inner)), begun_at_(begun_at) {}
  const nn::Graph& graph() const noexcept override { return inner_->graph(); }
  std::int64_t batch() const noexcept override { return inner_->batch(); }
  const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return inner_->layout(); }
  core::Span parameters() noexcept override { return inner_->parameters(); }
  core::Span gradients() noexcept override { return inner_->gradients(); }
  core::Span statistics() noexcept override { return inner_->statistics(); }
  void parameters_written() noexcept override { inner_->parameters_written(); }
  std::uint64_t parameters_version() const noexcept override { return inner_->parameters_version(); }
  const std::vector<nn::Bucket>& buckets() const noexcept override { return inner_->buckets(); }
  core::Result<nn::StepResult> step(const nn::Batch& batch, const std::function<void(int)>& ready) override {
    begun_at_.push_back(state_++);
    return inner_->step(batch, ready);
  }
  std::uint64_t state_of_steps() const noexcept override { return state_; }
  void set_state_of_steps(std::uint64_t state) noexcept override { state_ = state; }
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override { inner_->apply(step, state); }
  core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override { return inner_->evaluate(batch); }
  std::span<const float> outputs() const noexcept override { return inner_->outputs(); }
  const nn::Plan& plan() const noexcept override { return inner_->plan(); }
  std::size_t workspace_bytes() const noexcept override { return inner_->workspace_bytes(); }

 private:
  std::unique_ptr<nn::Replica> inner_;
  std::vector<std::uint64_t>& begun_at_;
  std::uint64_t state_ = 1;
};
class CountingSteps final : public nn::Backend {
 public:
  std::string name() const override { return backend().name(); }
  nn::Capabilities capabilities() const override { return backend().capabilities(); }
  const core::Kernels& kernels() const noexcept override { return backend().kernels(); }
  core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                     const nn::CompileOptions& options) override {
    return backend().compile(graph, options).map([&](auto replica) -> std::unique_ptr<nn::Replica> {
      return std::make_unique<Counting>(std::move(replica), begun_at);
    });
  }
  std::vector<std::uint64_t> begun_at;
};

// One replica computes for three workers: each has the state that a replica of its own would have.
TEST(GradientsInVirtualTime, WorkersOfOneReplicaHaveStatesOfTheirOwn) {
  CountingSteps counting;
  const auto learned = simulated({}, &counting);
  ASSERT_TRUE(learned) << learned.error().message;
  auto& begun_at = counting.begun_at;
  ASSERT_EQ(begun_at.size(), 42U);  // 2 epochs of 7 rounds of 3 workers
  std::ranges::sort(begun_at);
  for (std::size_t i = 0; i < begun_at.size(); ++i) EXPECT_EQ(begun_at[i], 1 + i / 3) << i;
}

// Bucket borders and step times change no bit of a synchronous run.
TEST(GradientsInVirtualTime, BspDoesNotDependOnTime) {
  const auto once = simulated({}).value();
  const auto other = simulated({}, &backend(), {"steps.buckets=3", "hosts.node.step_sigma=0.5"}).value();
  EXPECT_NE(once.result.wall, other.result.wall);
  EXPECT_EQ(once.summary.center_hash, other.summary.center_hash);
}

TEST(GradientsInVirtualTime, GradientsTakeNoVirtualTime) {
  for (const std::string strategy : {"easgd", "gossip", "ssp", "bsp", "mixed"}) {
    SCOPED_TRACE(strategy);
    const std::vector<std::string> overrides{"strategy.name=" + strategy, "train.lr=0.02"};
    const auto with = simulated(overrides), without = simulated(overrides, nullptr);
    ASSERT_TRUE(with) << with.error().message;
    EXPECT_EQ(with->result.wall, without->result.wall);
    EXPECT_EQ(with->result.events, without->result.events);
    EXPECT_FALSE(without->result.learned);
    const auto& epochs = with->result.learned->epochs;
    EXPECT_LT(epochs.at(1).train_loss, epochs.at(0).train_loss);
  }
}

// Peer messages that take longer than several steps are in transit at every epoch's end: the model contains their shares, else the
// simulation ends with an error.
TEST(GradientsInVirtualTime, PeerMessagesBelongToTheModel) {
  for (const std::string seed : {"1", "2", "3", "4"}) {
    SCOPED_TRACE(seed);
    const auto end = simulated({"strategy.name=gossip", "strategy.p=1", "train.lr=0.02", "cluster.workers=5",
                                "run.epochs=4", "run.seed=" + seed},
                               &backend(), {"network.latency_us=30000"});
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_NEAR(end->result.weight, 1, 1e-12);
    EXPECT_LT(end->result.learned->epochs.at(3).train_loss, end->result.learned->epochs.at(0).train_loss);
  }
}

// A worker that returns starts from the centre's parameters; the survivors of a group continue from the parameters of one of them.
TEST(GradientsInVirtualTime, EveryStrategyLearnsDespiteLosses) {
  for (const std::string strategy : {"easgd", "downpour", "ssp", "bsp", "pairs", "gossip", "mixed", "local_sgd"}) {
    for (const std::string seed : {"1", "2", "3"}) {
      SCOPED_TRACE(strategy + ", seed " + seed);
      const auto end = simulated(
          {"strategy.name=" + strategy, "train.lr=0.02", "cluster.workers=6", "run.seed=" + seed, "run.epochs=6"},
          &backend(), {"failures.mean_time_between_s=0.3"});
      ASSERT_TRUE(end) << end.error().message;
      EXPECT_GT(end->result.lost, 0U);
      EXPECT_LT(end->result.learned->epochs.at(5).train_loss, end->result.learned->epochs.at(0).train_loss);
    }
  }
}

// The only worker dies while its optimizer computes the epoch's last step: no model is left to evaluate.
TEST(GradientsInVirtualTime, ARunWithoutWorkersLeftHasNoModel) {
  const auto text = std::string(kClusterOfGradients) + "[loss.x]\nworker = 0\nat_s = 0.1\n";
  const auto forecasted =
      forecast({.settings = settings_with({"strategy.name=gossip", "cluster.workers=1", "data.train_samples=10"}),
                .cluster = parse_cluster(text, "c.toml", {"hosts.node.memory_gb_per_s=0.001"}).value(),
                .gradients = &backend()});
  ASSERT_FALSE(forecasted);
  EXPECT_EQ(forecasted.error().code, core::Errc::peer_lost) << forecasted.error().message;
}

// Micro-batches change the order of float32 sums and nothing else: the same schedule, and numbers that differ in their last bits.
TEST(GradientsInVirtualTime, MicroBatchesTrainAsTheWholeBatchUnderEveryStrategy) {
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    const std::vector<std::string> whole{"strategy.name=" + row.name, "train.lr=0.005"};
    auto parts = whole;
    parts.emplace_back("train.accumulate=5");
    const auto expected = simulated(whole), end = simulated(parts);
    ASSERT_TRUE(expected) << expected.error().message;
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->result.wall, expected->result.wall);
    EXPECT_EQ(end->summary.samples, expected->summary.samples);
    EXPECT_NEAR(end->summary.test_loss, expected->summary.test_loss, 1e-3 * expected->summary.test_loss);
    EXPECT_NEAR(end->summary.train_loss, expected->summary.train_loss, 1e-3 * expected->summary.train_loss);
  }
}

// With rate 0 only the running statistics move, from those of the checkpoint on: two steps by one worker.
TEST(GradientsInVirtualTime, InitialModelHasItsRunningStatistics) {
  const tests::Folder folder;
  const auto file = folder.file("first.safetensors");
  const std::vector<std::string> overrides{"cluster.workers=1",
                                           "data.train_samples=20",
                                           "run.epochs=1",
                                           "train.lr=0",
                                           "model.name=",
                                           "model.layers=[{type=\"flatten\"}, {type=\"linear\", outputs=8}, "
                                           "{type=\"batch_norm\"}, {type=\"linear\", outputs=10}]"};
  const auto spec = experiment::build_run_spec(settings_with(overrides), true).value();
  const auto statistics = nn::statistics_layout(*spec.graph);
  experiment::Checkpoint checkpoint;
  checkpoint.graph = spec.graph;
  checkpoint.vectors[""] = experiment::start_state(spec, nullptr).parameters;
  checkpoint.statistics.assign(statistics.canonical_floats(), 7);
  checkpoint.strategy = "bsp";
  checkpoint.optimizer = "momentum";
  ASSERT_TRUE(experiment::save_start(file, checkpoint));

  core::HostAllocator allocator;
  const auto replica = backend().compile(*spec.graph, {.batch = 10, .seed = 1, .arenas = &allocator}).value();
  replica->import_canonical(*checkpoint.vectors[""]);
  statistics.from_canonical(checkpoint.statistics, replica->statistics());
  std::vector<float> images(10 * 784);
  std::vector<std::int32_t> labels(10);
  for (std::uint64_t step = 0; step < 2; ++step) {
    const data::Lease lease{step, 0, static_cast<std::int64_t>(10 * step), 10, 0.5 * static_cast<double>(step)};
    ASSERT_TRUE(spec.source.train->build(lease, images, labels));
    ASSERT_TRUE(replica->step({images, labels, step, 10}, {}));
  }
  statistics.to_canonical(replica->statistics(), checkpoint.statistics);
  const auto score = experiment::evaluate(spec, backend(), *checkpoint.vectors[""], checkpoint.statistics).value();

  auto from_file = overrides;
  from_file.push_back("run.init=" + file);
  const auto end = simulated(from_file);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_NEAR(end->summary.test_loss, score.loss, 1e-5);
  EXPECT_GT(std::abs(simulated(overrides).value().summary.test_loss - score.loss), 1e-3) << "they matter";
}

TEST(GradientsInVirtualTime, ALossThatIsNotFiniteEndsTheRun) {
  const auto end = simulated({"train.lr=1e30"});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, core::Errc::diverged);
  EXPECT_NE(end.error().message.find("diverged: the loss is "), std::string::npos);
}

/// Also where the epoch before it was not evaluated.
TEST(GradientsInVirtualTime, TheTrainingLossIsThatOfTheLastEpoch) {
  const auto loss = [](const char* period) {
    const auto run = simulated({std::string("run.evaluate_every=") + period});
    EXPECT_TRUE(run) << run.error().message;
    return run && run->result.learned ? run->result.learned->train_loss : 0;
  };
  const double each = loss("1 epoch");
  EXPECT_GT(each, 0);
  EXPECT_EQ(loss("2 epochs"), each);
  EXPECT_EQ(loss("1000000 steps"), each);
}

TEST(GradientsInVirtualTime, ATargetEndsTheRun) {
  const auto end = simulated({"run.epochs=50", "run.target_accuracy=0.4", "strategy.name=easgd"});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_LT(end->summary.epochs, 50U);
  EXPECT_GE(end->result.learned->epochs.back().test.accuracy(), 0.4);
}

TEST(GradientsInVirtualTime, AModelBySizeAloneHasNone) {
  const auto end = forecast({.settings = settings_with({}),
                             .cluster = parse_cluster(kClusterOfGradients, "c.toml").value(),
                             .steps = 3,
                             .gradients = &backend()});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::sim
