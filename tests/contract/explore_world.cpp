#include "sim/explore/schedule/schedule.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/worlds.hpp"

namespace troupe::contract {
namespace {

constexpr std::uint64_t kSchedules = 200;

/// Without losses of workers, exactly the peer messages that the schedule loses may be missing. With losses the number is not checked.
std::string wrong_in_peer_messages(const explore::VirtualRun& run, const Tally& before) {
  const auto now = tally();
  const auto missing = (now.posted - before.posted) - (now.read - before.read);
  lost_on_purpose(missing);
  if (run.losses() > 0 || missing == run.peer_messages_lost()) return "";
  return std::to_string(missing) + " peer messages did not come, and " + std::to_string(run.peer_messages_lost()) +
         " were lost";
}

/// Runs one random schedule; false: something is wrong.
bool run_schedule(const explore::Schedule& schedule, Seen& seen) {
  const auto config = schedule.config();
  const auto strategy = config.and_then([&](const auto& c) { return strategies::make(c, schedule.shape()); });
  if (!strategy) return seen.error = strategy.error().message, false;
  forget_versions();
  explore::VirtualRun run(**strategy, schedule.run_options());
  const auto began = run.center();
  const auto before = tally();
  tell_time_by([&run] { return run.now(); });
  try {
    run.execute();
  } catch (const std::exception& broken) {
    seen.error = broken.what();
  }
  tell_time_by({});
  seen.center.clear();
  std::size_t next = 0;
  for (explore::ShardId shard = 0; shard < run.shards(); ++shard) {
    for (const float ended : run.server(shard).center()) {
      const float first = began[next++];
      if (run.server(shard).host().version() > 0)
        seen.center.push_back({first, ended});  // an unasked shard is not rounded to u
    }
  }
  if (seen.error.empty()) seen.error = wrong_in(seen.center);
  if (seen.error.empty()) seen.error = wrong_in_peer_messages(run, before);
  if (seen.error.empty()) return true;
  seen.error += "\nseed " + std::to_string(schedule.seed) + ": " + explore::to_text(schedule);
  return false;
}

}  // namespace

World explore_world(bool carried) {
  return {carried ? "explore_carried" : "explore_in_place",
          [carried](const Scenario& scenario) {
            Seen seen{.error = {}, .runs = 0};
            for (; seen.runs < kSchedules; ++seen.runs) {
              auto schedule = explore::draw_schedule(scenario.probe, scenario.seed + seen.runs).value();
              schedule.carriage = carried ? explore::Carriage::carried : explore::Carriage::in_place;
              schedule.options = scenario.options;
              schedule.steps += 8 * schedule.epochs;
              // The probe itself sends unusable pushes, and knows which they are.
              std::erase_if(schedule.faults, [](const auto& i) { return std::holds_alternative<explore::BadPush>(i); });
              if (!run_schedule(schedule, seen)) break;
            }
            return seen;
          },
          true};
}

}  // namespace troupe::contract
