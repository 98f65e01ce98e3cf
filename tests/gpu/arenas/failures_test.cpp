// Runs in device memory on a device that fails or has too little memory: they end with an error that says so, and nothing hangs.
#include <algorithm>

#include <gtest/gtest.h>

#include "experiment/directory/run_records.hpp"
#include "gpu/device/faulty_device.hpp"
#include "tests/gpu/arenas/device_runs.hpp"

namespace troupe::tests {
namespace {

class LostDevice : public ::testing::Test {
 protected:
  /// A run on a device that is lost at this call of `kind`.
  [[nodiscard]] experiment::RunEnd run_until(const std::string& strategy, gpu::CallKind kind, std::uint64_t number) {
    device_->set(gpu::Fault{.kind = kind, .number = number, .lost = true});
    SmallRun run(run_options_of(strategy), *backend_);
    return run.train();
  }
  [[nodiscard]] static std::ptrdiff_t losses_in(const SmallRun& run) {
    const auto kind = experiment::encode(experiment::LostRecord{}).kind;
    return std::ranges::count(run.journal(), kind, &core::JournalRecord::kind);
  }
  [[nodiscard]] std::uint64_t calls_of_a_run(const std::string& strategy, gpu::CallKind kind) {
    device_->set({});
    SmallRun run(run_options_of(strategy), *backend_);
    EXPECT_FALSE(run.train().failed);
    return device_->calls(kind);
  }

  gpu::HostDevice host_{gpu::HostDeviceOptions{.hides_memory = true}};
  std::shared_ptr<gpu::FaultyDevice> device_ = std::make_shared<gpu::FaultyDevice>(host_);
  std::unique_ptr<nn::Backend> backend_ = gpu::make_backend({device_}, "gpu", core::MemorySpace::device);
};

TEST_F(LostDevice, EndsTheRunAsAFailureOfADevice) {
  for (const char* strategy : {"bsp", "easgd", "downpour", "gossip", "diloco"})
    for (const auto kind : {gpu::CallKind::launch, gpu::CallKind::copy, gpu::CallKind::synchronize}) {
      const auto all = calls_of_a_run(strategy, kind);
      ASSERT_GT(all, 20U);
      for (const std::uint64_t number : {all / 10, all / 2, all - all / 10}) {
        SCOPED_TRACE(testing::Message() << strategy << ", " << to_string(kind) << " " << number << " of " << all);
        const auto end = run_until(strategy, kind, number);
        EXPECT_TRUE(device_->struck());
        EXPECT_TRUE(end.failed);
        EXPECT_EQ(end.error.code, core::Errc::io) << end.error.message;
        EXPECT_EQ(core::exit_code(end.error.code), 74);
      }
    }
}

// At another site than the coordinator's one failed call costs the run that worker, and no other.
TEST_F(LostDevice, CostsARunOverSeveralSitesItsWorker) {
  const auto options = run_options_of(
      "easgd", {"exchange.endpoint=inproc", "cluster.workers=3", "run.epochs=2", "cluster.server_placement=dedicated"});
  // Not a copy: one that brings a batch ahead may fail, the step makes it again.
  for (const auto kind : {gpu::CallKind::graph, gpu::CallKind::synchronize}) {
    SCOPED_TRACE(to_string(kind));
    device_->set({});
    ASSERT_FALSE(SmallRun(options, *backend_).train_on_hosts({0, 1, 2, 3}).failed);
    const auto all = device_->calls(kind);
    device_->set(gpu::Fault{.kind = kind, .number = all * 3 / 10});  // in the first epoch, not in its evaluation
    SmallRun run(options, *backend_);
    const auto end = run.train_on_hosts({0, 1, 2, 3});
    EXPECT_TRUE(device_->struck());
    EXPECT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(losses_in(run), 1);
    EXPECT_EQ(end.summary.epochs, 2U);
    EXPECT_GE(end.summary.samples, 1600U);  // what the lost worker did not finish is done again
  }
}

TEST_F(LostDevice, EndsARunWhoseWorkersAreAGroupWithACheckpoint) {
  const auto options = run_options_of("bsp", {"exchange.endpoint=inproc", "cluster.workers=3"});
  device_->set({});
  ASSERT_FALSE(SmallRun(options, *backend_).train_on_hosts({0, 1, 2, 3}).failed);
  device_->set(gpu::Fault{.kind = gpu::CallKind::graph, .number = device_->calls(gpu::CallKind::graph) / 2});
  SmallRun run(options, *backend_);
  const auto end = run.train_on_hosts({0, 1, 2, 3});
  ASSERT_TRUE(end.failed);
  EXPECT_EQ(end.error.code, core::Errc::peer_lost) << end.error.message;
  EXPECT_NE(end.error.message.find("fails, as the test wants it"), std::string::npos) << end.error.message;
  EXPECT_FALSE(run.tensors().empty());
}

TEST(ScarceDeviceMemory, RefusesTheRunAndSaysWhatToDo) {
  for (const char* strategy : {"bsp", "easgd", "gossip"}) {
    SCOPED_TRACE(strategy);
    bool trained = false;
    std::size_t refused = 0;
    for (std::size_t bytes = 100'000; !trained && bytes < 50'000'000; bytes = bytes * 5 / 4) {
      auto device = std::make_shared<gpu::HostDevice>(gpu::HostDeviceOptions{.memory = bytes, .hides_memory = true});
      const auto backend = gpu::make_backend({device}, "gpu", core::MemorySpace::device);
      SmallRun run(run_options_of(strategy, {"data.train_samples=400"}), *backend);
      const auto end = run.train();
      trained = !end.failed;
      if (trained) break;
      ++refused;
      EXPECT_EQ(end.error.code, core::Errc::out_of_memory) << bytes << " bytes: " << end.error.message;
      EXPECT_NE(end.error.message.find("smaller"), std::string::npos) << end.error.message;
    }
    EXPECT_TRUE(trained);
    EXPECT_GT(refused, 3U);
  }
}

}  // namespace
}  // namespace troupe::tests
