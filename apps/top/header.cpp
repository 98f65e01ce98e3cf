#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/top/screen.hpp"
#include "apps/top/values.hpp"
#include "experiment/report/console_text.hpp"

namespace troupe::apps {
namespace {

using report::Style;

Style style_of_status(const std::string& status) {
  if (status == "running") return Style::cyan;
  if (status == "done") return Style::green;
  return status == "interrupted" ? Style::yellow : Style::red;
}

/// Over the workers that know it.
std::optional<double> mean_of(const StateJson& workers, const char* key) {
  double sum = 0, known = 0;
  for (const auto& worker : workers)
    if (const auto number = number_at(worker, key)) {
      sum += *number;
      ++known;
    }
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

ScreenRow position_row(const StateJson& state, std::size_t columns, bool unicode) {
  const auto epoch = number_at(state, "epoch"), epochs = number_at(state, "epochs");
  ScreenRow row;
  row.add(fmt::format("epoch {}", epoch ? fmt::format("{:.2f}", *epoch) : "-"));
  if (epochs && *epochs > 0) {
    row.add(fmt::format(" of {:.0f} ", *epochs));
    const auto rest =
        fmt::format("  {} steps  {} samples  {} samples/s", whole_text(number_at(state, "steps")),
                    whole_text(number_at(state, "samples")), rate_value(number_at(state, "samples_per_s")));
    constexpr std::size_t kShortest = 8, kLongest = 40;
    const auto used = row.columns() + rest.size();
    if (columns > used + kShortest) {
      const auto share = std::clamp(epoch.value_or(0) / *epochs, 0.0, 1.0);
      const auto width = std::min(columns - used, kLongest);
      row.add(report::bar(share, width, report::StyledLine(""), {}, unicode), Style::cyan);
    }
    return row.add(rest);
  }
  return row.add(fmt::format("  {} steps  {} samples/s", whole_text(number_at(state, "steps")),
                             rate_value(number_at(state, "samples_per_s"))));
}

ScreenRow scores_row(const StateJson& state) {
  const auto& workers = list_at(state, "workers");
  ScreenRow row(fmt::format("training loss {}, accuracy {}", loss_value(mean_of(workers, "loss")),
                            percent_value(mean_of(workers, "accuracy"))));
  for (const auto& evaluation : list_at(state, "evaluations")) {
    const auto split = text_at(evaluation, "split");
    if (split == "train" || split.empty()) continue;
    const auto epoch = number_at(evaluation, "epoch");
    row.add(fmt::format("  {} loss {}, accuracy {}{}", split, loss_value(number_at(evaluation, "loss")),
                        percent_value(number_at(evaluation, "accuracy")),
                        epoch ? fmt::format(" after epoch {:.4g}", *epoch) : ""));
  }
  return row;
}

/// Epochs done before the session that the workers' numbers are of; none: it is the run's first.
std::optional<double> resumed_at(const StateJson& state) {
  std::optional<double> begun;
  for (const auto& member : list_at(state, "members"))
    if (text_at(member, "event") == "started") begun = number_at(member, "epoch");
  return begun && *begun > 0 ? begun : std::nullopt;
}

}  // namespace

std::vector<ScreenRow> header_rows(const LiveView& live, std::size_t columns, bool unicode) {
  const auto& state = live.state;
  std::vector<ScreenRow> rows(1);
  rows[0].add(live.run, Style::bold);
  if (!state.is_object()) {
    rows.emplace_back(live.problem.empty() ? "waiting for the run's first lines" : live.problem, Style::yellow);
    return rows;
  }
  const auto status = text_at(state, "status");
  rows[0].add("  ").add(status, style_of_status(status));
  rows[0].add("  " + time_value(state));
  if (!live.about.empty()) rows[0].add("  " + live.about);
  rows.push_back(position_row(state, columns, unicode));
  rows.push_back(scores_row(state));
  if (const auto epoch = resumed_at(state))
    rows.emplace_back(fmt::format("went on at epoch {:.2f}: numbers of single members cover this session only", *epoch),
                      Style::dim);
  if (const auto error = state.find("error"); error != state.end() && error->is_object())
    rows.emplace_back("ended: " + text_at(*error, "message"), Style::red);
  if (!live.problem.empty()) rows.emplace_back(live.problem, Style::yellow);
  return rows;
}

}  // namespace troupe::apps
