/// Times of training steps on this machine, for `bench step`, `simulate --measure` and `train --dry-run`. Thread rule: the main thread;
/// blocks while it measures.
#pragma once

#include <cstddef>
#include <vector>

#include "cpu/step_bench.hpp"
#include "experiment/settings.hpp"
#include "nn/graph.hpp"

namespace troupe::apps {

struct MeasuredSteps {
  std::vector<cpu::StepBench>
      workers;              ///< worker w has entry w mod size: one entry if all have the same batch and threads
  std::size_t at_once = 1;  ///< replicas that computed at the same time
};

/// Measures the steps of `graph` with the (micro-)batches and threads of the workers, each combination once, in three windows of `seconds` each.
/// `together`: as many replicas at once as the run has and the machine has cores for, so that they share caches and memory as in the run;
/// their mean counts. Without it one replica is measured alone, as on a machine of its own. It computes on cluster.device. Errors: those of make_backend() and of
/// run_step_bench().
[[nodiscard]] core::Result<MeasuredSteps> measure_steps(const experiment::Settings& settings, const nn::Graph& graph,
                                                        double seconds, bool together);

/// Cores that this process may use, at least 1.
[[nodiscard]] std::size_t cores();

}  // namespace troupe::apps
