#include "apps/commands/explore.hpp"

#include <cstdio>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/text/plural.hpp"
#include "sim/explore/exploration.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;

std::string to_json(const explore::Exploration& all) {
  auto violations = Json::array();
  for (const auto& found : all.violations) {
    auto faults = Json::array();
    for (const auto& fault : found.shrunk.schedule.faults) faults.push_back(explore::to_text(fault));
    violations.push_back({{"violation", found.shrunk.violation},
                          {"seed", found.drawn.seed},
                          {"strategy", found.drawn.strategy},
                          {"options", found.drawn.options},
                          {"workers", found.shrunk.schedule.workers},
                          {"servers", found.shrunk.schedule.servers},
                          {"steps", found.shrunk.schedule.steps},
                          {"irregularities", faults},
                          {"repeat", explore::command(found.drawn)}});
  }
  return Json{{"runs", all.runs},           {"events", all.events},       {"lost", all.lost},
              {"newcomers", all.newcomers}, {"discarded", all.discarded}, {"hash", fmt::format("{:016x}", all.hash)},
              {"strategies", all.runs_of},  {"violations", violations}}
      .dump();
}

std::string to_text(const explore::Exploration& all) {
  std::string text =
      fmt::format("{} of {}: {}, {} lost, {} discarded\n", core::counted(all.runs, "schedule"),
                  core::counted(all.runs_of.size(), "strategy", "strategies"), core::counted(all.events, "event"),
                  core::counted(all.lost, "member"), core::counted(all.discarded, "repeated transmission"));
  if (all.violations.empty()) text += fmt::format("no violation; trace hash {:016x}\n", all.hash);
  return text;
}

}  // namespace

core::Result<void> run_explore(const ExploreArguments& arguments) {
  // The last schedule's seed must be one that --seed takes: the command that repeats it names it.
  const auto most = std::numeric_limits<std::int64_t>::max() - (arguments.runs - 1);
  if (arguments.seed > most)
    return core::fail(core::Errc::usage,
                      fmt::format("--seed {}: must be at most {} with --explore {}: each schedule has the next seed",
                                  arguments.seed, most, arguments.runs));
  ProgressLine progress("explore");
  const auto runs = static_cast<std::uint64_t>(arguments.runs);
  const auto all = explore::explore({.runs = runs,
                                     .seed = static_cast<std::uint64_t>(arguments.seed < 0 ? 1 : arguments.seed),
                                     .strategy = arguments.strategy,
                                     .progress = [&](std::uint64_t done) {
                                       progress.show(static_cast<double>(done) / static_cast<double>(arguments.runs),
                                                     fmt::format("{} of {}", done, core::counted(runs, "schedule")));
                                     }});
  progress.clear();
  if (!all) return tl::unexpected(all.error());
  for (const auto& found : all->violations) tell(explore::to_text(found));
  if (auto printed = print(arguments.json ? to_json(*all) + "\n" : to_text(*all)); !printed) return printed;
  if (all->violations.empty()) return {};
  const auto& found = all->violations.front();
  return core::fail(core::Errc::internal,
                    fmt::format("{} violates an invariant: {}; repeat with: {}", found.drawn.strategy,
                                found.shrunk.violation, explore::command(found.drawn)));
}

}  // namespace troupe::apps
