/// How long steps take in virtual time: a pure function of (seed, worker, step), so it does not depend on what else happens.
#pragma once

#include "sim/cluster.hpp"
#include "sim/plan.hpp"

namespace troupe::sim {

class StepClock {
 public:
  StepClock(const Plan& plan, const Cluster& cluster) : plan_(plan), cluster_(cluster) {}

  /// Time of worker's step `step`: its machine's, at least plan.synthetic_step, times the slowdowns of machine and worker.
  [[nodiscard]] core::Duration time(strategies::WorkerId worker, strategies::Step step) const;
  /// Its mean, stragglers left out.
  [[nodiscard]] double expected_s(strategies::WorkerId worker) const;

 private:
  [[nodiscard]] const StepTimes& times(const Place& place) const;
  [[nodiscard]] double images(strategies::WorkerId worker, const StepTimes& times) const;
  [[nodiscard]] double slowed(strategies::WorkerId worker, double ns) const;
  const Plan& plan_;
  const Cluster& cluster_;
};

}  // namespace troupe::sim
