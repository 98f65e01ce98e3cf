#include "sim/explore/run.hpp"

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/event_log.hpp"

namespace troupe::explore {

core::Result<Outcome> run_schedule(const Schedule& schedule, const Maker& make, bool event_log) {
  const auto config = schedule.config();
  if (!config) return tl::unexpected(config.error());
  const auto strategy = make(*config, schedule.shape());
  if (!strategy) return tl::unexpected(strategy.error());
  const auto invariants = invariants_for(schedule, *config, (*strategy)->needs());
  if (!invariants) return tl::unexpected(invariants.error());
  EventLog lines;
  auto options = schedule.cluster();
  if (event_log) options.invariants.push_back(&lines);
  for (const auto& invariant : *invariants) options.invariants.push_back(invariant.get());
  Outcome outcome;
  Cluster cluster(**strategy, options);
  try {
    cluster.run();
  } catch (const std::exception& broken) {  // a Violation, or a contract error of a host
    outcome.violation = broken.what();
  }
  outcome.hash = cluster.trace().hash();
  outcome.events = cluster.queue().performed();
  outcome.lost = cluster.losses();
  outcome.newcomers = cluster.newcomers();
  outcome.discarded = cluster.network().discarded();
  outcome.event_log = lines.lines();
  return outcome;
}

}  // namespace troupe::explore
