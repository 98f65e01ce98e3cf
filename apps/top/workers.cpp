#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "apps/top/screen.hpp"
#include "apps/top/values.hpp"

namespace troupe::apps {
namespace {

using report::Style;

double time_of(const StateJson& worker) {
  double sum = 0;
  for (const auto* key : {"compute_s", "exchange_s", "wait_s", "load_s"})
    sum += std::max(number_at(worker, key).value_or(0), 0.0);
  return sum;
}

std::optional<double> share_of(const StateJson& worker, const char* key) {
  const auto all = time_of(worker);
  const auto part = number_at(worker, key);
  return all > 0 && part ? std::optional(*part / all) : std::nullopt;
}

std::string short_percent(std::optional<double> share) { return share ? fmt::format("{:.0f} %", 100 * *share) : "-"; }

std::string staleness_of(const StateJson& worker) {
  const auto mean = number_at(worker, "staleness_mean"), most = number_at(worker, "staleness_max");
  if (!mean) return "-";
  return most ? fmt::format("{:.1f} ({:.0f})", *mean, *most) : fmt::format("{:.1f}", *mean);
}

struct WorkerColumn {
  const char* head;
  std::size_t columns;
  std::function<std::string(const StateJson&)> text;
};

/// In the order in which a narrow screen keeps them.
const std::vector<WorkerColumn>& worker_columns() {
  static const auto share = [](const char* key) {
    return [key](const StateJson& worker) { return short_percent(share_of(worker, key)); };
  };
  static const std::vector<WorkerColumn> all{
      {"worker", 6, [](const StateJson& w) { return whole_text(number_at(w, "worker")); }},
      {"samples/s", 10, [](const StateJson& w) { return rate_value(number_at(w, "samples_per_s")); }},
      {"compute", 8, share("compute_s")},
      {"exchange", 9, share("exchange_s")},
      {"wait", 6, share("wait_s")},
      {"load", 6, share("load_s")},
      {"staleness", 11, staleness_of},
      {"report", 10, [](const StateJson& w) { return seconds_value(number_at(w, "seconds_since_report")); }},
      {"loss", 9, [](const StateJson& w) { return loss_value(number_at(w, "loss")); }},
      {"accuracy", 9, [](const StateJson& w) { return percent_value(number_at(w, "accuracy")); }},
      {"steps", 12, [](const StateJson& w) { return whole_text(number_at(w, "steps")); }},
      {"exchanges", 12, [](const StateJson& w) { return whole_text(number_at(w, "exchanges")); }},
  };
  return all;
}

/// The worst has the greatest.
double badness(const StateJson& worker, Sort sort) {
  constexpr double kUnknown = -std::numeric_limits<double>::infinity();
  switch (sort) {
    case Sort::rank: return -number_at(worker, "worker").value_or(0);
    case Sort::rate: return -number_at(worker, "samples_per_s").value_or(-kUnknown);
    case Sort::wait: return share_of(worker, "wait_s").value_or(kUnknown);
    case Sort::staleness: return number_at(worker, "staleness_mean").value_or(kUnknown);
    case Sort::report: return number_at(worker, "seconds_since_report").value_or(kUnknown);
  }
  return 0;
}

/// A worker that has said nothing for so long is shown in yellow.
constexpr double kSilent_s = 10;

}  // namespace

std::vector<ScreenRow> worker_rows(const StateJson& state, const View& view, std::size_t columns) {
  std::size_t shown = 1;
  for (std::size_t used = worker_columns()[0].columns; shown < worker_columns().size(); ++shown) {
    used += worker_columns()[shown].columns;
    if (used > columns) break;
  }
  std::vector<ScreenRow> rows(1);
  for (std::size_t i = 0; i < shown; ++i)
    rows[0].cell(worker_columns()[i].head, worker_columns()[i].columns, true, Style::dim);
  const auto& workers = list_at(state, "workers");
  std::vector<std::size_t> order(workers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> keys;
  for (const auto& worker : workers) keys.push_back(badness(worker, view.sort));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
  if (view.reversed) std::ranges::reverse(order);
  const bool running = text_at(state, "status") == "running";
  for (const auto index : order) {
    const auto& worker = workers[index];
    const bool silent = running && number_at(worker, "seconds_since_report").value_or(0) > kSilent_s;
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < shown; ++i)
      row.cell(worker_columns()[i].text(worker), worker_columns()[i].columns, true,
               silent ? Style::yellow : Style::plain);
  }
  if (workers.empty()) rows.emplace_back("no worker has reported yet", Style::dim);
  return rows;
}

}  // namespace troupe::apps
