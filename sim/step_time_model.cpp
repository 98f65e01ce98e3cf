#include "sim/step_time_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "sim/engine/virtual_time.hpp"

namespace troupe::sim {

const StepTimes& StepTimeModel::times(strategies::WorkerId worker) const {
  const auto& steps = cluster_.kinds[cluster_.workers[worker].kind].steps;
  return steps[worker % steps.size()];
}

double StepTimeModel::images(strategies::WorkerId worker, const StepTimes& times) const {
  return times.per_image ? static_cast<double>(run_.leases.batches[worker]) : 1;
}

double StepTimeModel::slowed(strategies::WorkerId worker, double ns) const {
  const auto& place = cluster_.workers[worker];
  return std::max(ns, static_cast<double>(run_.synthetic_step.count())) * run_.slowdown_of(worker) *
         cluster_.kinds[place.kind].slowdown;
}

double StepTimeModel::spell(strategies::WorkerId worker, Duration now) const {
  double factor = 1;
  for (const auto& spell : cluster_.spells) {
    const auto& workers = spell.workers;
    if (now < spell.from || now >= spell.to) continue;
    if (workers.empty() || std::find(workers.begin(), workers.end(), worker) != workers.end()) factor *= spell.factor;
  }
  return factor;
}

Duration StepTimeModel::time(strategies::WorkerId worker, strategies::Step step, Duration now) const {
  const auto& times = this->times(worker);
  const auto& stragglers = cluster_.stragglers;
  double ns = times.mean_ns;
  double factor = spell(worker, now);
  if (!times.measured_ns.empty() || times.sigma > 0 || stragglers.probability > 0) {
    core::Random random(run_.seed, core::Purpose::schedule, std::uint64_t{worker} << 40 | step);
    // exp(s z) has the mean exp(s²/2).
    if (!times.measured_ns.empty()) {
      ns = 0;
      for (std::uint32_t k = 0; k < times.draws; ++k) ns += times.measured(random.below(times.measured()));
    } else if (times.sigma > 0) {
      ns *= std::exp(times.sigma * random.normal() - times.sigma * times.sigma / 2);
    }
    if (random.uniform() < stragglers.probability) factor *= stragglers.factor;
  }
  return nanoseconds(factor * slowed(worker, ns * images(worker, times)));
}

double StepTimeModel::expected_s(strategies::WorkerId worker) const {
  const auto& times = this->times(worker);
  return 1e-9 * slowed(worker, times.expected_ns() * images(worker, times));
}

}  // namespace troupe::sim
