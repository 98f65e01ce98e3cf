// Evaluations and replays on a device: it prepares their images from bytes, and the numbers are those of images that the host prepares.
#include "experiment/evaluation.hpp"

#include <atomic>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "experiment/batches/batch_memory.hpp"
#include "tests/gpu/arenas/device_runs.hpp"
#include "tests/gpu/arenas/watched_backend.hpp"

namespace troupe::tests {
namespace {

/// The replicas that were asked to prepare images.
struct Counts {
  explicit Counts(WatchedBackend& backend) {
    backend.on_compile = [this](const nn::CompileOptions& options) {
      ++(options.bytes == nullptr ? of_floats : options.training ? training : evaluating);
    };
  }
  std::atomic<int> training = 0;
  std::atomic<int> evaluating = 0;
  std::atomic<int> of_floats = 0;
};

/// A mean for each pixel, and a crop that differs from sample to sample in training.
const RunOptions kPrepared{"data.mean=image", "data.normalise=true", "data.crop=24", "data.pad=2", "data.mirror=true"};

TEST(EvaluationOnADevice, PreparesImagesThereWithTheHostsBits) {
  for (const char* precision : {"fp32", "bf16"}) {
    SCOPED_TRACE(precision);
    auto options = run_options_of("bsp", kPrepared);
    options.insert(options.end(), {std::string("cluster.precision=") + precision, "data.test_samples=230"});
    const SmallRun run(options);
    const auto spec = experiment::build_run_spec(run.settings().value(), true).value();
    core::HostAllocator memory;
    const auto how = experiment::evaluation_options(spec, 1, memory);
    const auto of_bytes = experiment::compile_evaluation(resident(), *spec.graph, how, *spec.source.test).value();
    const auto of_floats = resident().compile(*spec.graph, how).value();
    EXPECT_TRUE(experiment::BatchMemory(*of_bytes, *spec.source.test).is_bytes());
    EXPECT_FALSE(experiment::BatchMemory(*of_floats, *spec.source.test).is_bytes());
    std::vector<float> parameters(static_cast<std::size_t>(spec.graph->parameter_count()));
    core::Random random(3, core::Purpose::test, 0);
    for (float& x : parameters) x = static_cast<float>(0.1 * random.normal());
    experiment::ConfusionMatrix first;
    experiment::ConfusionMatrix second;
    const auto bytes = experiment::evaluate(*of_bytes, *spec.source.test, parameters, {}, {}, &first).value();
    const auto floats = experiment::evaluate(*of_floats, *spec.source.test, parameters, {}, {}, &second).value();
    EXPECT_EQ(bytes.samples, 230) << "the last batch is not full";
    EXPECT_EQ(bytes.loss, floats.loss);
    EXPECT_EQ(bytes.top1, floats.top1);
    EXPECT_EQ(bytes.top5, floats.top5);
    EXPECT_EQ(of_bytes->outputs()[7], of_floats->outputs()[7]);
  }
}

TEST(EvaluationOnADevice, AnotherPreparationThanTheReplicasTravelsAsFloats) {
  const SmallRun run(run_options_of("bsp", kPrepared));
  const SmallRun brighter(run_options_of("bsp", {"data.crop=24", "data.mean=none"}));
  const auto spec = experiment::build_run_spec(run.settings().value(), true).value();
  const auto other = experiment::build_run_spec(brighter.settings().value(), true).value();
  core::HostAllocator memory;
  const auto replica = experiment::compile_evaluation(
      resident(), *spec.graph, experiment::evaluation_options(spec, 1, memory), *spec.source.test);
  EXPECT_FALSE(experiment::BatchMemory(**replica, *other.source.test).is_bytes());
}

TEST(EvaluationOnADevice, TheEvaluatorAndReplaysSendBytes) {
  auto options = run_options_of("bsp", kPrepared);
  options.emplace_back("data.validation=\"0.25\"");
  WatchedBackend backend(resident());
  const Counts trained(backend);
  SmallRun run(options, backend);
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(trained.evaluating, 1);
  EXPECT_EQ(trained.training, 2);
  EXPECT_EQ(trained.of_floats, 0);
  const Counts replayed(backend);
  const auto report = replay::replay_run({run.run_directory().string(), {}}, backend);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(replayed.evaluating, 1);
  EXPECT_EQ(replayed.training, 2);
  EXPECT_EQ(replayed.of_floats, 0);
  EXPECT_EQ(report->summary.center_hash, end.summary.center_hash);
  EXPECT_EQ(report->summary.test_loss, end.summary.test_loss);
  EXPECT_GE(report->hashes(), 4U);
}

}  // namespace
}  // namespace troupe::tests
