// The distance from the centre where vectors are in a device's memory, which the host cannot read: measured by the device's own kernels.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "experiment/accounts/distance.hpp"
#include "tests/gpu/arenas/device_runs.hpp"

namespace troupe::tests {
namespace {

using experiment::DistanceMeter;

std::vector<float> random_vector(std::size_t floats, std::uint64_t which) {
  core::Random random(which, core::Purpose::strategy, floats);
  std::vector<float> all(floats);
  for (auto& x : all) x = static_cast<float>(random.uniform() - 0.5);
  return all;
}

class DeviceVectors : public ::testing::Test {
 protected:
  core::Buffer on_device(const std::vector<float>& host) {
    auto buffer = core::Buffer::allocate(memory_, host.size()).value();
    kernels_.upload(buffer.view(), host);
    return buffer;
  }
  core::Allocator& memory_ = resident().arenas();
  const core::Kernels& kernels_ = resident().kernels_for(memory_);
};

TEST_F(DeviceVectors, AreMeasuredInPiecesWhateverTheLength) {
  for (const std::size_t floats : {std::size_t{100}, DistanceMeter::kScratch, 2 * DistanceMeter::kScratch + 4112}) {
    SCOPED_TRACE(floats);
    const auto a = random_vector(floats, 1), b = random_vector(floats, 2);
    double sum = 0;  // of the float32 differences, in float64
    for (std::size_t i = 0; i < floats; ++i) sum += std::pow(static_cast<double>(a[i] - b[i]), 2);
    const auto x = on_device(a), c = on_device(b);
    DistanceMeter meter(kernels_, &memory_);
    EXPECT_NEAR(meter.squared(x.view(), c.view()).value(), sum, 1e-11 * sum);
    EXPECT_NEAR(meter.squared_from_host(x.view(), b).value(), sum, 1e-11 * sum);
    EXPECT_EQ(meter.squared(x.view(), x.view()), 0) << "the scratch memory of the measurement before";
    std::vector<float> after(floats);
    kernels_.download(after, x.view());
    EXPECT_EQ(after, a) << "a measurement writes no vector";
  }
}

/// A device without memory left.
class NoMemory final : public core::Allocator {
 public:
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t) override {
    return core::fail(core::Errc::out_of_memory, "none is left");
  }
  void deallocate(void*, std::size_t) noexcept override {}
};

TEST_F(DeviceVectors, AreNotMeasuredWithoutMemory) {
  const auto x = on_device(random_vector(100, 1));
  NoMemory none;
  DistanceMeter full(kernels_, &none), unknown(kernels_);
  EXPECT_FALSE(full.squared(x.view(), x.view()));
  EXPECT_FALSE(unknown.squared(x.view(), x.view()));
}

std::vector<std::pair<std::size_t, double>> distances(const SmallRun& run) {
  std::ifstream metrics(run.run_directory() / "metrics.jsonl");
  std::vector<std::pair<std::size_t, double>> found;
  for (std::string line; std::getline(metrics, line);)
    if (const auto json = nlohmann::json::parse(line); json["kind"] == "worker" && json["recent"].contains("distance"))
      found.emplace_back(json["worker"], json["recent"]["distance"]);
  return found;
}

/// In one process; over sites with copies in host memory, in device memory with messages, and in mapped device memory.
const std::vector<RunOptions> kPlaces{
    {},
    {"exchange.endpoint=inproc", "cluster.server_placement=dedicated"},
    {"exchange.endpoint=inproc", "cluster.server_placement=dedicated", "cluster.device=cuda_on_host",
     "exchange.map_devices=false"},
    {"exchange.endpoint=inproc", "cluster.server_placement=dedicated", "cluster.device=cuda_on_host"}};

RunOptions with(RunOptions options, const RunOptions& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// One worker, one step: c is x before the step, and x − c the step itself, lr · ‖g‖.
TEST(DeviceDistances, TheDistanceOfTheFirstStepIsTheStep) {
  const std::vector<RunOptions> ways{{"strategy.name=easgd", "strategy.tau=1"},
                                     {"strategy.name=easgd", "strategy.tau=1", "strategy.overlap=skip"},
                                     {"strategy.name=sync_easgd", "strategy.tau=1"},
                                     {"strategy.name=local_sgd", "strategy.tau=1"},
                                     {"strategy.name=downpour", "strategy.n_push=2"},
                                     {"strategy.name=downpour", "strategy.n_push=2", "strategy.overlap=skip"}};
  for (const auto& way : ways)
    for (const auto& place : kPlaces) {
      SCOPED_TRACE(testing::PrintToString(with(way, place)));
      SmallRun run(with(with(way, place), {"cluster.workers=1", "cluster.servers=2", "model.widths=[8]",
                                           "data.train_samples=20", "train.lr=0.1"}),
                   resident());
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto found = distances(run);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_GT(found[0].second, 0);
      EXPECT_NEAR(found[0].second, 0.1 * end.summary.per_worker[0].norm_max, 1e-3 * found[0].second);
    }
}

/// Two workers, one step each, in one clock: a worker is away from the centre by the other one's step.
TEST(DeviceDistances, APullMeasuresTheStepOfTheOtherWorker) {
  for (const auto& place : kPlaces) {
    SCOPED_TRACE(testing::PrintToString(place));
    SmallRun run(with(place, {"strategy.name=ssp", "strategy.s=0", "cluster.workers=2", "cluster.servers=2",
                              "model.widths=[8]", "data.train_samples=40", "train.lr=0.1"}),
                 resident());
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto found = distances(run);
    ASSERT_EQ(found.size(), 2U);
    for (const auto& [rank, distance] : found)
      EXPECT_NEAR(distance, 0.1 * end.summary.per_worker[1 - rank].norm_max, 1e-3 * distance);
  }
}

}  // namespace
}  // namespace troupe::tests
