/// Training throughput of one replica, for `troupe bench step`. Measures the same as the scripts for other frameworks: forward,
/// loss, backward and momentum on one batch that is already in memory.
#pragma once

#include "cpu/breakdown.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

struct StepBench {
  double images_per_s = 0;
  double ms_per_step = 0;
  double gflops = 0;             // arithmetic of the model (Graph::training_flops) per second, without padding
  std::vector<double> steps_ms;  // of all windows, step by step
  Breakdown breakdown;           // of a last window, if asked for: timing each operation slows a step a little
};

struct StepBenchOptions {
  nn::CompileOptions compile;  // its arenas are the benchmark's own
  double seconds = 1;          // length of a window
  /// Above 1 a pause follows every step, as on a worker with cluster.slowdown: the pauses are not counted, but their effect on caches and
  /// clocks is.
  double slowdown = 1;
  bool breakdown = false;
  nn::Backend* backend = nullptr;  // computes instead of the CPU; it has no breakdown
};

/// The best of three windows, on the calling thread with `compile.threads` OpenMP threads. Errors as compile and step; Errc::usage for a
/// breakdown that there is not.
[[nodiscard]] core::Result<StepBench> run_step_bench(const nn::Graph& graph, const StepBenchOptions& options);

}  // namespace troupe::cpu
