/// Training throughput of one replica, for `troupe bench step`. Measures what the peers' scripts measure: forward, loss,
/// backward and momentum on one batch that is in memory already.
#pragma once

#include "nn/backend.hpp"

namespace troupe::cpu {

struct StepBench {
  double images_per_s = 0;
  double ms_per_step = 0;
  double gflops = 0;             // arithmetic of the model (Graph::training_flops) per second, padding not counted
  std::vector<double> steps_ms;  // of all windows, step by step
};

/// The best of three windows of `seconds` each, on the calling thread with `threads` OpenMP threads. With `slowdown` > 1 every
/// step is followed by a pause, as of a worker with cluster.slowdown: pauses are not counted, but what they do to caches and
/// clocks is. Errc as compile and step.
[[nodiscard]] core::Result<StepBench> run_step_bench(const nn::Graph& graph, std::int64_t batch, int threads,
                                                     double seconds, double slowdown = 1);

}  // namespace troupe::cpu
