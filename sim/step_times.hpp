/// How long steps take in virtual time: a pure function of (seed, worker, step, the time of its begin), so it does not depend on what
/// else happens.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/plan.hpp"

namespace troupe::sim {

class StepClock {
 public:
  StepClock(const Plan& plan, const Cluster& cluster) : plan_(plan), cluster_(cluster) {}

  /// Time of worker's step `step`, which begins at `now`: its machine's, at least plan.synthetic_step, times the slowdowns of machine
  /// and worker, of the spell that it begins in, and of a straggler when it is one.
  [[nodiscard]] Duration time(strategies::WorkerId worker, strategies::Step step, Duration now) const;
  /// Its mean, spells and stragglers left out.
  [[nodiscard]] double expected_s(strategies::WorkerId worker) const;

 private:
  [[nodiscard]] const StepTimes& times(strategies::WorkerId worker) const;
  [[nodiscard]] double images(strategies::WorkerId worker, const StepTimes& times) const;
  [[nodiscard]] double spell(strategies::WorkerId worker, Duration now) const;
  [[nodiscard]] double slowed(strategies::WorkerId worker, double ns) const;
  const Plan& plan_;
  const Cluster& cluster_;
};

}  // namespace troupe::sim
