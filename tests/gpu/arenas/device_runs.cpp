#include "tests/gpu/arenas/device_runs.hpp"

#include <gtest/gtest.h>

namespace troupe::tests {

std::unique_ptr<nn::Backend> resident_backend(std::optional<std::uint64_t> schedule_seed) {
  auto device =
      std::make_shared<gpu::HostDevice>(gpu::HostDeviceOptions{.schedule_seed = schedule_seed, .hides_memory = true});
  return gpu::make_backend({std::move(device)}, "gpu", core::MemorySpace::device);
}

nn::Backend& resident() {
  static const auto backend = resident_backend();
  return *backend;
}

nn::Backend& mirrored() {
  static const auto backend = gpu::make_backend({std::make_shared<gpu::HostDevice>()}, "gpu");
  return *backend;
}

RunOptions run_options_of(const std::string& strategy, const RunOptions& more) {
  RunOptions options{"strategy.name=" + strategy,    "cluster.servers=2", "data.train_samples=800", "model.widths=[8]",
                     "run.checkpoint_every=9 steps", "train.lr=0.03"};
  if (strategy == "eamsgd") options.emplace_back("train.optimizer=nesterov");
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

void expect_replays(const RunOptions& options, nn::Backend& on) {
  SmallRun run(options, on);
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_GT(end.summary.steps, 0U);
  for (nn::Backend* backend : {&resident(), &mirrored()}) {
    SCOPED_TRACE(backend == &resident() ? "replayed on the device" : "replayed with mirrors");
    const auto report = replay::replay_run({run.run_directory().string(), {}}, *backend);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->segments.size(), 1U);
    EXPECT_TRUE(report->segments[0].complete);
    EXPECT_EQ(report->segments[0].replayed, report->segments[0].events);
    EXPECT_GE(report->segments[0].hashes, 4U);
    EXPECT_EQ(report->summary.center_hash, end.summary.center_hash);
    EXPECT_EQ(report->summary.test_loss, end.summary.test_loss);
    EXPECT_EQ(report->summary.steps, end.summary.steps);
  }
}

}  // namespace troupe::tests
