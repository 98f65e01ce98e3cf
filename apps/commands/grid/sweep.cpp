// `troupe grid FILE` of a file with [sweep].
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/directory_file.hpp"
#include "apps/commands/grid/grid.hpp"
#include "apps/grid/results.hpp"
#include "apps/output.hpp"
#include "apps/sweep/run_sweep.hpp"
#include "apps/sweep/sweep_report.hpp"
#include "core/text/plural.hpp"
#include "experiment/report/console_text.hpp"

namespace troupe::apps {
namespace {

constexpr std::size_t kShownTrials = 20;

std::string range_text(const sweep::Parameter& p) {
  if (p.kind == sweep::Kind::choice) return fmt::format("{}", fmt::join(p.choices, " | "));
  return fmt::format("{:g} to {:g}{}{}", p.low, p.high, p.kind == sweep::Kind::integer ? ", whole" : "",
                     p.log ? ", over logarithms" : "");
}

std::string budget_text(const SweepPlan& plan) {
  std::vector<std::string> parts;
  if (plan.options.trials > 0) parts.push_back(core::counted(plan.options.trials, "run"));
  if (plan.options.epochs > 0) parts.push_back(core::counted(static_cast<std::uint64_t>(plan.options.epochs), "epoch"));
  if (plan.most_s > 0) parts.push_back(report::clock_time(plan.most_s));
  return fmt::format("at most {}", fmt::join(parts, ", "));
}

std::string announcement_of(const SweepPlan& plan, const sweep::Record& before) {
  auto text = fmt::format("{}: a sweep in {}, {}", plan.file.path, plan.directory, budget_text(plan));
  const auto done = std::ranges::count_if(before.trials, [](const auto& trial) { return !trial.scores.empty(); });
  if (done > 0)
    text += fmt::format("; goes on after {} with {} in {}", core::counted(static_cast<std::uint64_t>(done), "run"),
                        core::counted(static_cast<std::uint64_t>(std::llround(sweep::epochs_trained(before))), "epoch"),
                        report::clock_time(before.elapsed_s));
  return text;
}

std::string plan_text(const SweepPlan& plan) {
  std::string text;
  for (const auto& p : plan.space.parameters()) {
    text += fmt::format("  {}: {}", p.key, range_text(p));
    if (p.depends_on) {
      std::vector<std::string> names;
      for (const auto choice : p.when) names.push_back(plan.space[*p.depends_on].choices[choice]);
      text += fmt::format(" (only with {})", fmt::join(names, ", "));
    }
    text += "\n";
  }
  text +=
      fmt::format("  score: {}, the {} the better\n", plan.metric, plan.options.higher_is_better ? "higher" : "lower");
  if (plan.options.rungs.size() > 1)
    text += fmt::format("  runs are compared after {} epochs; one in {:g} goes on\n",
                        fmt::join(plan.options.rungs.begin(), plan.options.rungs.end() - 1, ", "), plan.options.eta);
  return text;
}

core::Result<void> print_end(const GridArguments& arguments, const SweepEnd& end) {
  if (!arguments.json) {
    std::optional<TrialMetric> sort;
    if (arguments.sort) sort = metric_of(*arguments.sort, end.statuses);
    return print(table_of(end.record, kShownTrials, sort));
  }
  auto json = to_json(end.record);
  json["directory"] = end.runs.directory;
  json["interrupted"] = end.interrupted;
  json["results"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < end.statuses.size(); ++i)
    json["results"].push_back(to_json(end.runs.runs[i], end.runs.file.bases.front(), end.statuses[i]));
  return print(grid::one_line(json));
}

core::Result<void> verdict_of(const SweepEnd& end) {
  const auto done = end.record.ranking.size();
  if (end.stopped)
    return core::fail(end.stopped->code, fmt::format("stopped after {}: {}; the same command goes on",
                                                     core::counted(done, "run"), end.stopped->message));
  if (end.interrupted)
    return core::fail(core::Errc::interrupted,
                      fmt::format("interrupted after {}; the same command goes on", core::counted(done, "run")));
  return {};
}

}  // namespace

core::Result<void> run_sweep_command(const GridArguments& arguments, grid::GridFile file, Interrupt& interrupt) {
  std::optional<ProgressLine> checking;
  checking.emplace("checking the sweep", checking_mode(arguments));
  auto options = pool_options(arguments);
  if (!options) return tl::unexpected(std::move(options.error()));
  const auto plan = plan_sweep(std::move(file), arguments.overrides, run_check());
  if (!plan) return tl::unexpected(plan.error());
  const auto before = peek(*plan);
  if (!before) return tl::unexpected(before.error());
  checking.reset();
  if (arguments.dry_run) {
    if (!arguments.json) return print(announcement_of(*plan, *before) + "\n" + plan_text(*plan));
    auto json = to_json(*before);
    json["directory"] = plan->directory;
    return print(grid::one_line(json));
  }

  write_directory_file(arguments.directory_file, plan->directory);
  grid::Progress progress(progress_mode(arguments), stderr);
  progress.line(announcement_of(*plan, *before));
  const SignalsForRuns signals(interrupt, *options);
  const auto end = run_sweep(*plan, *options, progress, interrupt.token());
  if (!end) return tl::unexpected(end.error());
  const auto printed = print_end(arguments, *end);
  if (auto judged = verdict_of(*end); !judged) return judged;
  return printed;
}

}  // namespace troupe::apps
