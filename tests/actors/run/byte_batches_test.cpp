// Batches travel as bytes in memory of the backend where it takes them: the same run as with floats. The device executes on the host, later, in
// random orders that streams and events allow.
#include <atomic>

#include <gtest/gtest.h>

#include "gpu/backend.hpp"
#include "gpu/device/host_device.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

/// Forwards to a backend on a device; perhaps keeps from its callers what it can do with batches.
class Watched final : public nn::Backend {
 public:
  Watched(std::uint64_t schedule, bool shows_all)
      : sound_(gpu::make_backend({std::make_shared<gpu::HostDevice>(gpu::HostDeviceOptions{.schedule_seed = schedule})},
                                 "gpu_on_host")),
        shows_all_(shows_all) {}
  std::string name() const override { return sound_->name(); }
  nn::Capabilities capabilities() const override {
    auto can = sound_->capabilities();
    if (!shows_all_) can.takes_bytes = false, can.batches = nullptr;
    return can;
  }
  const core::Kernels& kernels() const noexcept override { return sound_->kernels(); }
  core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                     const nn::CompileOptions& options) override {
    for_bytes += options.bytes && options.training ? 1 : 0;
    return sound_->compile(graph, options);
  }

  std::atomic<int> for_bytes{0};  // replicas of workers

 private:
  std::unique_ptr<nn::Backend> sound_;
  bool shows_all_;
};

/// All tensors of the last checkpoint.
std::map<std::string, std::vector<float>> trained(nn::Backend& backend, const std::vector<std::string>& options) {
  SmallRun run(options);
  const auto end = actors::run_training(
      {.settings = *run.settings(), .resume = {}, .console = {.mode = report::ConsoleOptions::Mode::quiet}}, backend,
      {});
  EXPECT_FALSE(end.failed) << end.error.message;
  return run.tensors();
}

TEST(ByteBatches, TrainTheSameModelAsFloats) {
  for (const std::string accumulate : {"train.accumulate=1", "train.accumulate=4"})
    for (const std::string threads : {"data.decode_threads=1", "data.decode_threads=2"}) {
      const std::vector<std::string> options{
          accumulate, threads, "data.crop=24", "data.pad=1", "data.mean=image", "data.mirror=true", "data.prefetch=2"};
      Watched with_floats(1, false);
      const auto want = trained(with_floats, options);
      EXPECT_FALSE(want.empty());
      EXPECT_EQ(with_floats.for_bytes, 0);
      Watched with_bytes(2, true);
      EXPECT_EQ(trained(with_bytes, options), want);
      EXPECT_EQ(with_bytes.for_bytes, 2);
    }
}

/// The source of a small crop has more bytes than the crop has as floats.
TEST(ByteBatches, FloatsTravelWhereTheyAreFewerBytes) {
  Watched backend(1, true);
  EXPECT_FALSE(trained(backend, {"data.crop=12"}).empty());
  EXPECT_EQ(backend.for_bytes, 0);
}

}  // namespace
}  // namespace troupe::tests
