#include "apps/sweep/sweep_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/grid/results.hpp"
#include "apps/grid/toml_text.hpp"
#include "core/text/plural.hpp"
#include "experiment/sweep/importance.hpp"

namespace troupe::apps {

sweep::Record record_of(const SweepPlan& plan, const sweep::Search& search, std::span<const TrialState> states,
                        double elapsed_s, std::string state) {
  const auto& options = search.options();
  sweep::Record record;
  record.file = plan.file.path;
  record.metric = plan.metric;
  record.higher_is_better = options.higher_is_better;
  record.method = plan.file.sweep->method;
  record.schedule = plan.file.sweep->schedule;
  record.rungs = options.rungs;
  record.most_trials = options.trials;
  record.most_epochs = options.epochs;
  record.most_hours = plan.file.sweep->hours;
  record.elapsed_s = elapsed_s;
  record.state = std::move(state);
  record.parameters = plan.space.parameters();
  for (std::size_t i = 0; i < search.trials().size(); ++i) {
    const auto& trial = search.trials()[i];
    sweep::TrialRecord entry{.trial = i,
                             .name = states[i].name,
                             .settings = {},
                             .scores = trial.scores,
                             .training_to = std::nullopt,
                             .status = std::string(name(states[i].status.status)),
                             .directory = states[i].status.directory,
                             .scored_s = states[i].scored_s,
                             .diverged_after = trial.diverged_after};
    for (std::size_t p = 0; p < plan.space.size(); ++p)
      if (trial.point[p]) entry.settings.emplace_back(plan.space[p].key, plan.space.text(p, *trial.point[p]));
    if (trial.under_way) entry.training_to = options.rungs[*trial.under_way];
    record.trials.push_back(std::move(entry));
  }
  record.ranking = search.ranking();
  std::vector<sweep::Point> ranked;
  for (const auto trial : record.ranking) ranked.push_back(search.trials()[trial].point);
  record.importance = sweep::importance(plan.space, ranked);
  return record;
}

std::string score_text(const std::string& metric, const std::optional<double>& score) {
  return score ? fmt::format("{} {:.4g}", metric, *score) : fmt::format("{}: diverged", metric);
}

TrialMetric metric_of(const std::string& name, std::span<const grid::RunStatus> statuses) {
  TrialMetric metric{name, {}};
  for (const auto& status : statuses) metric.values.push_back(grid::number_in(status, name));
  return metric;
}

std::string table_of(const sweep::Record& record, std::size_t most, const std::optional<TrialMetric>& sort) {
  std::vector<std::string> keys;
  for (const auto& parameter : record.parameters)
    if (std::ranges::find(keys, parameter.key) == keys.end()) keys.push_back(parameter.key);
  std::vector<std::vector<std::string>> cells(1, {"run"});
  for (const auto& key : keys) cells.front().push_back(grid::short_name(key, keys));
  cells.front().insert(cells.front().end(), {"epochs", record.metric});
  const bool own_column = sort && sort->name != record.metric;
  if (own_column) cells.front().push_back(sort->name);
  cells.front().emplace_back("status");
  auto order = record.ranking;
  for (const auto& trial : record.trials)
    if (std::ranges::find(order, trial.trial) == order.end()) order.push_back(trial.trial);
  if (sort) {
    const double sign = grid::higher_is_better(sort->name) ? -1 : 1;
    std::ranges::stable_sort(order, {}, [&](std::size_t trial) {
      const auto& value = sort->values[trial];
      return std::pair(!value.has_value(), sign * value.value_or(0));
    });
  }
  for (const auto number : order) {
    if (most > 0 && cells.size() > most) break;
    const auto& trial = record.trials[number];
    auto& line = cells.emplace_back(1, fmt::format("{:03}", trial.trial));
    for (const auto& key : keys) {
      const auto setting = std::ranges::find(trial.settings, key, &std::pair<std::string, std::string>::first);
      line.push_back(setting == trial.settings.end() ? "-" : grid::plain_text(setting->second));
    }
    line.push_back(trial.diverged_after   ? fmt::format("{:.2f}", *trial.diverged_after)
                   : trial.scores.empty() ? "-"
                                          : fmt::format("{}", record.rungs[trial.scores.size() - 1]));
    const auto score = sweep::score_of(trial);
    line.push_back(score ? fmt::format("{:.4g}", *score) : "-");
    if (own_column) {
      const auto& value = sort->values[number];
      line.push_back(value ? fmt::format("{:.4g}", *value) : "-");
    }
    line.push_back(trial.status == "done" && trial.scores.size() < record.rungs.size() ? "stopped" : trial.status);
  }
  auto text = grid::aligned(cells);
  if (cells.size() < order.size() + 1) text += fmt::format("and {} more\n", order.size() + 1 - cells.size());
  const auto trained = sweep::epochs_trained(record);
  const auto whole = static_cast<std::int64_t>(record.trials.size()) * record.rungs.back();
  if (whole > 0)
    text +=
        fmt::format("{} trained{}, {:.0f} % of the {} that {} to the end would take\n",
                    core::counted(static_cast<std::uint64_t>(std::llround(trained)), "epoch"),
                    record.most_epochs > 0 ? fmt::format(" of at most {}", record.most_epochs) : "",
                    100.0 * trained / static_cast<double>(whole), whole, core::counted(record.trials.size(), "run"));
  if (!record.importance.empty()) {
    std::vector<std::pair<double, std::string>> parts;
    for (std::size_t i = 0; i < record.parameters.size(); ++i)
      parts.emplace_back(record.importance[i], record.parameters[i].key);
    std::ranges::stable_sort(parts, std::greater<>{}, &std::pair<double, std::string>::first);
    std::vector<std::string> words;
    for (const auto& [part, key] : parts) words.push_back(fmt::format("{} {:.0f} %", key, 100 * part));
    text += fmt::format("what decides: {}\n", fmt::join(words, ", "));
  }
  return text;
}

}  // namespace troupe::apps
