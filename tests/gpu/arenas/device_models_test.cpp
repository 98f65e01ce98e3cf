// GPUs of different models in one run: each model's engines are measured by one worker, and the others of its model take them.
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "tests/gpu/arenas/device_runs.hpp"
#include "tests/gpu/arenas/watched_backend.hpp"

namespace troupe::tests {
namespace {

TEST(DeviceModels, OneWorkerOfEachMeasures) {
  for (const int models : {1, 2}) {
    WatchedBackend watched(resident());
    watched.model = [&](const nn::CompileOptions& options) {
      return models > 1 && options.local_rank >= 2 ? std::string("slow") : std::string("fast");
    };
    std::mutex mutex;
    std::map<int, bool> measures;  // by local rank: it was compiled without choices
    watched.on_compile = [&](const nn::CompileOptions& options) {
      const std::lock_guard lock(mutex);
      if (options.training) measures[options.local_rank] = options.measure && options.plan == nullptr;
    };
    SmallRun run(run_options_of("bsp", {"cluster.workers=4", "cluster.device=cuda_on_host"}), watched);
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_EQ(measures, (std::map<int, bool>{{0, true}, {1, false}, {2, models > 1}, {3, false}})) << models;
  }
}

}  // namespace
}  // namespace troupe::tests
