#include "sim/explore/run.hpp"

#include "sim/explore/world/chronicle.hpp"
#include "sim/explore/invariants/invariants.hpp"

namespace troupe::explore {

core::Result<Outcome> run_schedule(const Schedule& schedule, const Maker& make, bool chronicle) {
  const auto config = schedule.config();
  if (!config) return tl::unexpected(config.error());
  const auto strategy = make(*config, schedule.company());
  if (!strategy) return tl::unexpected(strategy.error());
  const auto invariants = invariants_for(schedule, *config, (*strategy)->needs());
  Chronicle lines;
  auto options = schedule.cluster();
  if (chronicle) options.invariants.push_back(&lines);
  for (const auto& invariant : invariants) options.invariants.push_back(invariant.get());
  Outcome outcome;
  Cluster cluster(**strategy, options);
  try {
    cluster.run();
  } catch (const std::exception& broken) {  // a Violation here, or a rule of the hosts
    outcome.violation = broken.what();
  }
  outcome.hash = cluster.trace().hash();
  outcome.events = cluster.queue().performed();
  outcome.lost = cluster.losses();
  outcome.newcomers = cluster.workers() - schedule.workers;
  outcome.discarded = cluster.network().discarded();
  outcome.chronicle = lines.lines();
  return outcome;
}

}  // namespace troupe::explore
