#include "sim/explore/run.hpp"

#include "sim/explore/event_log.hpp"
#include "sim/explore/invariants/invariants.hpp"

namespace troupe::explore {

core::Result<ScheduleResult> run_schedule(const Schedule& schedule, const Maker& make, bool event_log) {
  const auto config = schedule.config();
  if (!config) return tl::unexpected(config.error());
  const auto strategy = make(*config, schedule.shape());
  if (!strategy) return tl::unexpected(strategy.error());
  const auto invariants = invariants_for(schedule, *config, (*strategy)->needs());
  if (!invariants) return tl::unexpected(invariants.error());
  EventLog lines;
  auto options = schedule.run_options();
  if (event_log) options.invariants.push_back(&lines);
  for (const auto& invariant : *invariants) options.invariants.push_back(invariant.get());
  ScheduleResult result;
  VirtualRun run(**strategy, options);
  try {
    run.execute();
  } catch (const std::exception& broken) {  // a Violation, or a contract error of a host
    result.violation = broken.what();
  }
  result.hash = run.trace().hash();
  result.events = run.queue().performed();
  result.lost = run.losses();
  result.newcomers = run.newcomers();
  result.discarded = run.network().discarded();
  result.event_log = lines.lines();
  return result;
}

}  // namespace troupe::explore
