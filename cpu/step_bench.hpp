/// Training throughput of one replica, for `troupe bench step`. Measures the same as the scripts for other frameworks: forward,
/// loss, backward and momentum on one batch that is already in memory.
#pragma once

#include "nn/backend.hpp"

namespace troupe::cpu {

struct StepBench {
  double images_per_s = 0;
  double ms_per_step = 0;
  double gflops = 0;             // arithmetic of the model (Graph::training_flops) per second, without padding
  std::vector<double> steps_ms;  // of all windows, step by step
};

/// The best of three windows of `seconds` each, on the calling thread with `threads` OpenMP threads. With `slowdown` > 1 a pause
/// follows every step, as on a worker with cluster.slowdown: the pauses are not counted, but their effect on caches and clocks is.
/// Errors as compile and step.
[[nodiscard]] core::Result<StepBench> run_step_bench(const nn::Graph& graph, std::int64_t batch, int threads,
                                                     double seconds, double slowdown = 1);

}  // namespace troupe::cpu
