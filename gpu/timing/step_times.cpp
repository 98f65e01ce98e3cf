#include "gpu/timing/step_times.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/random.hpp"
#include "gpu/backend.hpp"
#include "gpu/replica.hpp"

namespace troupe::gpu {
namespace {

constexpr int kFirstSteps = 5;  // the graph is captured, and clocks rise
constexpr int kOperationsOfAStep = 32;
constexpr int kRounds = 5;

}  // namespace

core::Result<StepTimes> step_times(const std::shared_ptr<Device>& device, const nn::Graph& graph,
                                   nn::CompileOptions options, int steps) {
  const auto timed = std::make_shared<TimedDevice>(device);
  const auto backend = make_backend({timed}, "gpu");
  options.arenas = &timed->memory();
  // Outlives the replica, which may copy from it.
  auto images = core::Buffer::allocate(timed->pinned(), static_cast<std::size_t>(options.batch * graph.input().size()));
  if (!images) return tl::unexpected(std::move(images.error()));
  core::Buffer velocity;  // outlives the replica, too
  const auto compiled = backend->compile(graph, options);
  if (!compiled) return tl::unexpected(compiled.error());
  nn::Replica& replica = **compiled;
  core::Random random(1, core::Purpose::test, 0);
  {
    std::vector<float> parameters(replica.layout()->canonical_floats());
    for (float& x : parameters) x = static_cast<float>(random.uniform(-0.05, 0.05));
    replica.import_canonical(parameters);
  }
  auto allocated = core::Buffer::allocate(timed->memory(), replica.parameters().size());
  if (!allocated) return tl::unexpected(std::move(allocated.error()));
  velocity = std::move(*allocated);

  for (float& x : images->view()) x = static_cast<float>(random.normal());
  std::vector<std::int32_t> labels(static_cast<std::size_t>(options.batch));
  for (auto& label : labels)
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(graph.output().size())));
  nn::Batch batch;
  batch.images = images->view();
  batch.labels = labels;
  batch.count = options.batch;
  batch.space = core::MemorySpace::host_pinned;
  const core::OptimizerStep rule{.kind = core::OptimizerKind::momentum, .lr = 1e-3F, .momentum = 0.9F};
  const auto run = [&](int count) -> core::Result<void> {
    for (int i = 0; i < count; ++i) {
      ++batch.lease;
      nn::Batch next = batch;
      ++next.lease;
      replica.prefetch(batch);  // the first one; the others are here, or on their way
      replica.prefetch(next);
      if (auto result = replica.step(batch, {}); !result) return tl::unexpected(std::move(result.error()));
      replica.apply(rule, velocity.view());
    }
    return {};
  };

  if (auto ran = run(kFirstSteps); !ran) return tl::unexpected(std::move(ran.error()));
  const auto began = std::chrono::steady_clock::now();
  if (auto ran = run(steps); !ran) return tl::unexpected(std::move(ran.error()));
  StepTimes times;
  times.steps = steps;
  times.is_captured = dynamic_cast<const GpuReplica&>(replica).is_captured();
  times.ms_per_step = 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / steps;
  times.device_steps = std::max(steps / kRounds, 1) + 1;
  std::vector<DeviceTimes> rounds;
  for (int round = 0; round < kRounds; ++round) {
    (void)replica.outputs();  // waits for the last update
    if (auto started = timed->start(times.device_steps * kOperationsOfAStep); !started)
      return tl::unexpected(std::move(started.error()));
    if (auto ran = run(times.device_steps); !ran) return tl::unexpected(std::move(ran.error()));
    (void)replica.outputs();
    auto measured = timed->stop();
    if (!measured) return tl::unexpected(std::move(measured.error()));
    rounds.push_back(*measured);
  }
  std::ranges::sort(rounds, {}, &DeviceTimes::idle);
  times.device = rounds[kRounds / 2];
  return times;
}

}  // namespace troupe::gpu
