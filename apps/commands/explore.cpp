#include "apps/commands/explore.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.hpp"
#include "sim/explore/exploration.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;

/// A line that is redrawn in place, only on a terminal.
class Progress {
 public:
  explicit Progress(std::int64_t runs) : runs_(runs), shown_(isatty(STDERR_FILENO) == 1) {}
  void show(std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    fmt::print(stderr, "\r{} of {} schedules", done, runs_);
    std::fflush(stderr);
  }
  void clear() const {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  std::int64_t runs_;
  bool shown_;
  std::chrono::steady_clock::time_point last_{};
};

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
      fmt::format("{} schedules of {} strategies: {} events, {} members lost, {} repeated transmissions discarded\n",
                  all.runs, all.runs_of.size(), all.events, all.lost, all.discarded);
  if (all.violations.empty()) text += fmt::format("no violation; trace hash {:016x}\n", all.hash);
  return text;
}

}  // namespace

core::Result<void> run_explore(const ExploreArguments& arguments) {
  Progress progress(arguments.runs);
  const auto all = explore::explore({.runs = static_cast<std::uint64_t>(arguments.runs),
                                     .seed = static_cast<std::uint64_t>(arguments.seed < 0 ? 1 : arguments.seed),
                                     .strategy = arguments.strategy,
                                     .progress = [&](std::uint64_t done) { progress.show(done); }});
  progress.clear();
  if (!all) return tl::unexpected(all.error());
  for (const auto& found : all->violations) fmt::print(stderr, "{}", explore::to_text(found));
  if (auto printed = print(arguments.json ? to_json(*all) + "\n" : to_text(*all)); !printed) return printed;
  if (all->violations.empty()) return {};
  const auto& found = all->violations.front();
  return core::fail(core::Errc::internal,
                    fmt::format("{} violates an invariant: {}; repeat with: {}", found.drawn.strategy,
                                found.shrunk.violation, explore::command(found.drawn)));
}

}  // namespace troupe::apps
