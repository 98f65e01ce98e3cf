#include "cpu/step_bench.hpp"

#include <chrono>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "core/random.hpp"
#include "cpu/backend.hpp"
#include "cpu/replica.hpp"

namespace troupe::cpu {
namespace {

constexpr int kWindows = 3;
constexpr int kWarmUpSteps = 2;
constexpr float kRate = 0.01f;
constexpr float kMomentum = 0.9f;

}  // namespace

core::Result<StepBench> run_step_bench(const nn::Graph& graph, const StepBenchOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (options.breakdown && options.compile.parallel == nn::Parallel::neurons)
    return core::fail(core::Errc::usage,
                      "a breakdown times the layers of one rank: set model.parallel = \"none\" for it");
  if (options.breakdown && options.backend)
    return core::fail(core::Errc::usage, fmt::format("a breakdown times the layers of the CPU: there is none of the {}",
                                                     options.backend->name()));
  const auto [batch, slowdown] = std::pair(options.compile.batch, options.slowdown);
  const auto own = options.backend ? nullptr : make_backend();
  nn::Backend* const backend = options.backend ? options.backend : own.get();
  core::HostAllocator plain;
  core::Buffer images;  // outlives the replica, which copies it ahead where it needs copies
  auto compile = options.compile;
  compile.arenas = &backend->arenas(compile);
  core::Buffer velocity;  // outlives the replica, whose last step may still use it
  auto compiled = backend->compile(graph, compile);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  nn::Replica& replica = **compiled;

  core::Random random(1, core::Purpose::test, 0);
  {  // freed before the steps: a measurement of the process's memory is of the steps
    std::vector<float> parameters(replica.layout()->canonical_floats());
    for (float& x : parameters) x = static_cast<float>(random.uniform(-0.05, 0.05));
    replica.import_canonical(parameters);
  }
  core::Allocator* const ahead = backend->capabilities().batches;
  auto pixels = core::Buffer::allocate(ahead ? *ahead : plain, static_cast<std::size_t>(batch * graph.input().size()));
  if (!pixels) return tl::unexpected(std::move(pixels.error()));
  images = std::move(*pixels);
  for (float& x : images.view()) x = static_cast<float>(random.normal());
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  for (auto& label : labels)
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(graph.output().size())));
  auto allocated = core::Buffer::allocate(*compile.arenas, replica.parameters().size());
  if (!allocated) return tl::unexpected(std::move(allocated.error()));
  velocity = std::move(*allocated);

  nn::Batch input{images.view(), labels, 0, batch};
  if (ahead) input.space = ahead->space();
  const core::OptimizerStep rule{core::OptimizerKind::momentum, kRate, kMomentum, 0};
  const std::function<void(int)> nobody;
  const auto step = [&]() -> core::Result<void> {
    ++input.lease;
    nn::Batch next = input;
    ++next.lease;
    replica.prefetch(input);  // the first one; the others are here, or on their way
    replica.prefetch(next);
    if (auto result = replica.step(input, nobody); !result) return tl::unexpected(std::move(result.error()));
    replica.apply(rule, velocity.view());
    return {};
  };

  for (int i = 0; i < kWarmUpSteps; ++i)
    if (auto done = step(); !done) return tl::unexpected(std::move(done.error()));
  double best = 0;  // steps per second
  std::vector<double> steps_ms;
  for (int window = 0; window < kWindows; ++window) {
    const auto window_began = Clock::now();
    Clock::duration computed{0};
    int steps = 0;
    auto began = window_began;
    do {
      if (auto done = step(); !done) return tl::unexpected(std::move(done.error()));
      const auto took = Clock::now() - began;
      steps_ms.push_back(std::round(1e9 * std::chrono::duration<double>(took).count()) / 1e6);  // whole nanoseconds
      computed += took;
      ++steps;
      if (slowdown > 1) std::this_thread::sleep_for((slowdown - 1) * took);
      began = slowdown > 1 ? Clock::now() : began + took;
    } while (began - window_began < std::chrono::duration<double>(options.seconds));
    best = std::max(best, steps / std::chrono::duration<double>(computed).count());
  }
  const auto samples = static_cast<double>(batch);
  StepBench result{best * samples, 1e3 / best, best * samples * graph.training_flops() / 1e9, std::move(steps_ms), {}};
  if (options.breakdown) {
    auto& timed = static_cast<CpuReplica&>(replica);  // the CPU's: a breakdown of another backend is refused
    timed.start_breakdown();
    const auto began = Clock::now();
    do {
      if (auto done = step(); !done) return tl::unexpected(std::move(done.error()));
    } while (Clock::now() - began < std::chrono::duration<double>(options.seconds));
    result.breakdown = timed.breakdown();
  }
  return result;
}

}  // namespace troupe::cpu
