#include "sim/explore/exploration.hpp"

#include "sim/explore/schedule/space.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::explore {
namespace {

/// Shortest schedules have a few dozen lines; of a longer log only the end is shown.
constexpr std::size_t kMostLines = 80;

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& row : registry()) names.push_back(row.name);
  return names;
}

}  // namespace

core::Result<Exploration> explore(const ExplorationOptions& options) {
  const auto strategies = options.strategy.empty() ? all_names() : std::vector{options.strategy};
  for (const auto& name : strategies)
    if (const auto row = find_searched(name); !row) return tl::unexpected(row.error());
  const Maker make = options.make ? options.make : Maker{strategies::make};
  Exploration all;
  while (all.runs < options.runs && all.violations.size() < options.most_violations) {
    const auto seed = options.seed + all.runs;
    const auto& name = strategies[seed % strategies.size()];
    const auto drawn = draw_schedule(name, seed);
    if (!drawn) return tl::unexpected(drawn.error());
    const auto& schedule = *drawn;
    const auto result = run_schedule(schedule, make);
    if (!result)
      return core::fail(core::Errc::internal,
                        command(schedule) + ": drawn options are refused: " + result.error().message);
    ++all.runs;
    ++all.runs_of[name];
    all.events += result->events;
    all.lost += result->lost;
    all.newcomers += result->newcomers;
    all.discarded += result->discarded;
    all.hash = (all.hash ^ result->hash) * 0x100000001b3U;
    if (result->violation) all.violations.push_back({schedule, shrink(schedule, *result->violation, make)});
    if (options.progress) options.progress(all.runs);
  }
  return all;
}

std::string command(const Schedule& schedule) {
  return "troupe simulate --explore 1 --seed " + std::to_string(schedule.seed) + " --strategy " + schedule.strategy;
}

std::string to_text(const Found& found) {
  const auto& shrunk = found.shrunk;
  std::string text = "violation: " + shrunk.violation + "\nseed " + std::to_string(found.drawn.seed) +
                     "; repeat with: " + command(found.drawn) + "\nthe shortest schedule found that shows it (" +
                     std::to_string(shrunk.runs) + " tries; " + std::to_string(found.drawn.faults.size()) +
                     " irregularities were drawn):\n" + to_text(shrunk.schedule) + "its events:\n";
  const auto& lines = shrunk.event_log;
  const std::size_t first = lines.size() > kMostLines ? lines.size() - kMostLines : 0;
  if (first > 0) text += "  … " + std::to_string(first) + " before\n";
  for (auto line = first; line < lines.size(); ++line) text.append("  ").append(lines[line]).append(1, '\n');
  return text;
}

}  // namespace troupe::explore
