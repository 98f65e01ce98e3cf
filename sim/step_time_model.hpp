/// Step times in virtual time: a pure function of (seed, worker, step, start time), independent of all other events.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/simulated_run.hpp"

namespace troupe::sim {

class StepTimeModel {
 public:
  StepTimeModel(const SimulatedRun& run, const Cluster& cluster) : run_(run), cluster_(cluster) {}

  /// Time of the worker's step `step`, which begins at `now`: the machine's time, at least run.synthetic_step, times the slowdowns of
  /// machine and worker, of the slow spell in which it begins, and of a straggler if the step is one.
  [[nodiscard]] Duration time(strategies::WorkerId worker, strategies::Step step, Duration now) const;
  /// Mean time, without slow spells and stragglers.
  [[nodiscard]] double expected_s(strategies::WorkerId worker) const;

 private:
  [[nodiscard]] const StepTimes& times(strategies::WorkerId worker) const;
  [[nodiscard]] double images(strategies::WorkerId worker, const StepTimes& times) const;
  [[nodiscard]] double spell(strategies::WorkerId worker, Duration now) const;
  [[nodiscard]] double slowed(strategies::WorkerId worker, double ns) const;
  const SimulatedRun& run_;
  const Cluster& cluster_;
};

}  // namespace troupe::sim
