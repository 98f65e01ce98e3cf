#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/top/screen.hpp"
#include "apps/top/values.hpp"
#include "core/text/display.hpp"

namespace troupe::apps {
namespace {

using report::Style;

constexpr std::size_t kCell = 8, kName = 11;
constexpr std::size_t kMostEntries = 1000;  // that are sorted and listed

/// The times of who waits for whom, by row and column.
struct WaitTable {
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> seconds;  // as long as its row says, and none below 0
  std::vector<double> sums;                  // of each row
  double most = 0;
};

std::vector<std::string> names_in(const StateJson& list) {
  std::vector<std::string> names;
  for (const auto& name : list) names.push_back(name.is_string() ? core::printable(name.get<std::string>()) : "-");
  return names;
}

WaitTable table_of(const StateJson& state) {
  WaitTable table;
  const auto found = state.is_object() ? state.find("waits") : state.end();
  if (found == state.end() || !found->is_object()) return table;
  table.rows = names_in(list_at(*found, "rows"));
  table.columns = names_in(list_at(*found, "columns"));
  const auto& seconds = list_at(*found, "seconds");
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    auto& row = table.seconds.emplace_back();
    table.sums.push_back(0);
    if (r >= seconds.size() || !seconds[r].is_array()) continue;
    for (std::size_t c = 0; c < std::min(seconds[r].size(), table.columns.size()); ++c) {
      const auto& one = seconds[r][c];
      const auto value = one.is_number() && std::isfinite(one.get<double>()) ? std::max(one.get<double>(), 0.0) : 0.0;
      row.push_back(value);
      table.sums.back() += value;
      table.most = std::max(table.most, value);
    }
  }
  return table;
}

Style style_of_wait(double seconds, double most) {
  constexpr double kHigh = 0.5, kLow = 0.05;
  if (most <= 0 || seconds < kLow * most) return Style::dim;
  return seconds > kHigh * most ? Style::red : seconds > kHigh / 2 * most ? Style::yellow : Style::plain;
}

/// "w3" of "worker 3".
std::string short_name(const std::string& name) {
  const auto blank = name.find(' ');
  return blank == std::string::npos || blank == 0 ? name : name.substr(0, 1) + name.substr(blank + 1);
}

std::vector<ScreenRow> matrix_rows(const WaitTable& table) {
  std::vector<ScreenRow> rows(1);
  rows[0].cell("waits for", kName, false, Style::dim);
  for (const auto& name : table.columns) rows[0].cell(short_name(name), kCell, true, Style::dim);
  rows[0].cell("sum", kCell, true, Style::dim);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    auto& row = rows.emplace_back();
    row.cell(table.rows[r], kName, false);
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const double seconds = c < table.seconds[r].size() ? table.seconds[r][c] : 0;
      row.cell(seconds > 0 ? fmt::format("{:.1f}", seconds) : ".", kCell, true, style_of_wait(seconds, table.most));
    }
    row.cell(fmt::format("{:.1f}", table.sums[r]), kCell);
  }
  return rows;
}

std::vector<ScreenRow> largest_rows(const WaitTable& table) {
  struct Entry {
    double seconds = 0;
    std::size_t row = 0, column = 0;
  };
  std::vector<Entry> entries;
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    for (std::size_t c = 0; c < table.seconds[r].size(); ++c)
      if (table.seconds[r][c] > 0) entries.push_back({table.seconds[r][c], r, c});
  const auto count = std::min(entries.size(), kMostEntries);
  std::ranges::partial_sort(
      entries, entries.begin() + static_cast<std::ptrdiff_t>(count), [](const auto& a, const auto& b) {
        return a.seconds != b.seconds ? a.seconds > b.seconds : std::pair(a.row, a.column) < std::pair(b.row, b.column);
      });
  std::vector<ScreenRow> rows;
  rows.emplace_back(fmt::format("who waits for whom: the longest of {} x {}, with their shares of the waiter's waits",
                                table.rows.size(), table.columns.size()),
                    Style::dim);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& entry = entries[i];
    auto& row = rows.emplace_back();
    row.cell(table.rows[entry.row], kName, false).add(" for ").cell(table.columns[entry.column], kName, false);
    row.cell(seconds_value(entry.seconds), kName, true, style_of_wait(entry.seconds, table.most));
    row.cell(fmt::format("{:.0f} %", 100 * entry.seconds / table.sums[entry.row]), kCell);
  }
  return rows;
}

}  // namespace

std::vector<ScreenRow> wait_rows(const StateJson& state, std::size_t columns, std::size_t rows) {
  const auto table = table_of(state);
  if (table.most <= 0) return {ScreenRow("no worker has waited for another member", Style::dim)};
  const bool fits = kName + (table.columns.size() + 1) * kCell <= columns && table.rows.size() < rows;
  return fits ? matrix_rows(table) : largest_rows(table);
}

}  // namespace troupe::apps
