#include "apps/grid/results.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/grid/toml_text.hpp"
#include "experiment/report/console_text.hpp"
#include "experiment/report/terminal.hpp"
#include "experiment/reports.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::grid {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool holds_a_list(const OrderedJson& json) {
  return std::ranges::any_of(json.items(), [](const auto& item) {
    return item.value().is_array() || (item.value().is_object() && holds_a_list(item.value()));
  });
}

std::string dump(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

OrderedJson summary_of(const RunStatus& run_status) {
  if (run_status.summary.empty()) return nullptr;
  auto json = OrderedJson::parse(run_status.summary, nullptr, false);
  return json.is_object() ? json : OrderedJson(nullptr);
}

/// A field of a CSV file, quoted as in RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string field(const OrderedJson& value) {
  if (value.is_null()) return {};
  return field(value.is_string() ? value.get<std::string>() : dump(value));
}

std::string value_of(const ResolvedGrid& grid, const GridRun& run, const std::string& key) {
  if (key == kBaseKey) return grid.file.bases[run.combination.base];
  const auto* choice = run.combination.find(key);
  return choice == nullptr ? std::string{} : plain_text(choice->value);
}

/// Varied keys without the seed, which has its own column.
std::vector<std::string> columns(const ResolvedGrid& grid) {
  std::vector<std::string> keys = grid.varied;
  std::erase(keys, kSeedKey);
  return keys;
}

struct Sample {
  static constexpr double kWhole = 1000;  // from here on decimals are noise
  std::vector<double> values;
  [[nodiscard]] std::optional<double> mean() const {
    if (values.empty()) return std::nullopt;
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / static_cast<double>(values.size());
  }
  [[nodiscard]] double deviation() const {
    double squares = 0;
    for (const double v : values) squares += (v - *mean()) * (v - *mean());
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
  }
  [[nodiscard]] std::string text() const {
    if (values.empty()) return "-";
    if (values.size() == 1) return number(values.front(), 4);
    if (*mean() >= kWhole) return fmt::format("{} ± {:.0f}", number(*mean(), 4), deviation());
    return fmt::format("{} ± {}", number(*mean(), 4), number(deviation(), 2));
  }
  /// `digits` significant digits; whole numbers from a thousand on.
  static std::string number(double value, int digits) {
    constexpr double kLargest = 1e15;
    if (value >= kWhole && value < kLargest) return report::grouped(static_cast<std::uint64_t>(std::llround(value)));
    return fmt::format("{:.{}g}", value, digits);
  }
};

/// The runs that differ only in their seed.
struct Row {
  std::vector<std::string> keys;
  std::size_t runs = 0;
  std::size_t done = 0;
  std::vector<Sample> metrics;
};

}  // namespace

std::vector<std::pair<std::string, OrderedJson>> flatten(const OrderedJson& summary) {
  std::vector<std::pair<std::string, OrderedJson>> flat;
  if (!summary.is_object()) return flat;
  for (const auto& [key, value] : summary.items()) {
    if (value.is_array() || (value.is_object() && holds_a_list(value))) continue;
    if (!value.is_object()) {
      flat.emplace_back(key, value);
      continue;
    }
    for (auto& [inner, scalar] : flatten(value)) flat.emplace_back(key + "." + inner, std::move(scalar));
  }
  return flat;
}

std::optional<double> number_in(const RunStatus& run_status, std::string_view metric) {
  for (const auto& [key, value] : flatten(summary_of(run_status)))
    if (key == metric && value.is_number()) return value.get<double>();
  return std::nullopt;
}

std::string aligned(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::size_t> widths;
  for (const auto& line : cells) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], report::columns_of(line[i]));
  }
  std::string text;
  for (const auto& line : cells) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i)
      row += line[i] + std::string(widths[i] - report::columns_of(line[i]) + 2, ' ');
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::vector<std::string> metric_names() {
  experiment::Summary full;
  full.test_top5 = 0;  // null otherwise
  std::vector<std::string> names;
  for (const auto& [key, value] : flatten(OrderedJson::parse(experiment::to_json(full))))
    if (value.is_number()) names.push_back(key);
  return names;
}

std::string to_csv(const ResolvedGrid& grid, std::span<const RunStatus> statuses) {
  const auto keys = columns(grid);
  std::vector<std::string> summary_keys;
  std::vector<std::vector<std::pair<std::string, OrderedJson>>> summaries;
  for (const auto& run_status : statuses) {
    summaries.push_back(flatten(summary_of(run_status)));
    for (const auto& [key, value] : summaries.back())
      if (std::ranges::find(summary_keys, key) == summary_keys.end()) summary_keys.push_back(key);
  }
  std::erase(summary_keys, "run");  // the directory has its own column before

  std::vector<std::string> header;
  for (const auto& key : keys) header.push_back(field(key));
  const bool scored = grid.file.sweep.has_value();
  for (const char* key : {"seed", "status", "exit_code", "error", "run"}) header.emplace_back(key);
  if (scored) header.insert(header.end(), {"rung_epochs", "score"});
  header.insert(header.end(), summary_keys.begin(), summary_keys.end());
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (std::size_t i = 0; i < grid.runs.size(); ++i) {
    const auto& run = grid.runs[i];
    const auto& run_status = statuses[i];
    std::vector<std::string> row;
    for (const auto& key : keys) row.push_back(field(value_of(grid, run, key)));
    row.push_back(fmt::format("{}", run.settings.run.seed));
    row.emplace_back(name(run_status.status));
    row.push_back(run_status.exit_code < 0 ? "" : fmt::format("{}", run_status.exit_code));
    row.push_back(field(run_status.error));
    row.push_back(field(run_status.directory));
    if (scored) {
      const auto& score = run_status.score;
      row.push_back(score ? fmt::format("{}", score->epochs) : "");
      row.push_back(score && score->score ? fmt::format("{}", *score->score) : "");
    }
    for (const auto& key : summary_keys) {
      const auto found = std::ranges::find(summaries[i], key, &std::pair<std::string, OrderedJson>::first);
      row.push_back(found == summaries[i].end() ? std::string{} : field(found->second));
    }
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return text;
}

OrderedJson to_json(const GridRun& run, const std::string& base, const RunStatus& run_status) {
  OrderedJson settings = OrderedJson::object();
  for (const auto& choice : run.combination.choices)
    if (choice.key != kSeedKey) settings[choice.key] = plain_text(choice.value);
  for (auto& [key, value] : settings.items()) {  // numbers and booleans keep their type
    if (auto parsed = OrderedJson::parse(value.get<std::string>(), nullptr, false);
        parsed.is_number() || parsed.is_boolean() || parsed.is_array())
      value = std::move(parsed);
  }
  OrderedJson json{
      {"name", run.name},
      {"base", base},
      {"settings", std::move(settings)},
      {"seed", run.settings.run.seed},
      {"strategy", run.settings.strategy},
      {"status", name(run_status.status)},
      {"exit_code", run_status.exit_code < 0 ? OrderedJson(nullptr) : OrderedJson(run_status.exit_code)},
      {"error", run_status.error.empty() ? OrderedJson(nullptr) : OrderedJson(run_status.error)},
      {"directory", run_status.directory.empty() ? OrderedJson(nullptr) : OrderedJson(run_status.directory)},
      {"summary", summary_of(run_status)}};
  if (const auto& score = run_status.score) {
    json["rung_epochs"] = score->epochs;
    json["score"] = score->score ? OrderedJson(*score->score) : OrderedJson(nullptr);
  }
  return json;
}

std::string one_line(const OrderedJson& json) { return dump(json) + "\n"; }

std::string to_jsonl(const ResolvedGrid& grid, std::span<const RunStatus> statuses) {
  std::string text;
  for (std::size_t i = 0; i < grid.runs.size(); ++i)
    text += one_line(to_json(grid.runs[i], grid.file.bases[grid.runs[i].combination.base], statuses[i]));
  return text;
}

core::Result<void> write_results(const ResolvedGrid& grid, std::span<const RunStatus> statuses) {
  const std::array files{std::pair{"results.csv", to_csv(grid, statuses)},
                         std::pair{"results.jsonl", to_jsonl(grid, statuses)}};
  for (const auto& [file, text] : files) {
    const std::array parts{std::as_bytes(std::span(text))};
    if (auto written = nn::replace_file(nn::system_files(), grid.directory, file, parts); !written) return written;
  }
  return {};
}

bool higher_is_better(std::string_view metric) noexcept {
  return metric.ends_with("accuracy") || metric.ends_with("top5") || metric.ends_with("images_per_s");
}

std::string table(const ResolvedGrid& grid, std::span<const RunStatus> statuses, std::string_view metric) {
  std::vector<std::string> metrics{std::string(metric)};
  for (const char* usual : {"test.accuracy", "test.loss", "train.images_per_s", "wall_s"})
    if (metric != usual) metrics.emplace_back(usual);

  const auto keys = columns(grid);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < grid.runs.size(); ++i) {
    std::vector<std::string> values;
    for (const auto& key : keys) values.push_back(value_of(grid, grid.runs[i], key));
    auto row = std::ranges::find(rows, values, &Row::keys);
    if (row == rows.end()) row = rows.insert(row, {values, 0, 0, std::vector<Sample>(metrics.size())});
    ++row->runs;
    if (statuses[i].status != Status::done) continue;
    ++row->done;
    for (const auto& [key, value] : flatten(summary_of(statuses[i])))
      for (std::size_t m = 0; m < metrics.size(); ++m)
        if (metrics[m] == key && value.is_number()) row->metrics[m].values.push_back(value.get<double>());
  }
  const double sign = higher_is_better(metric) ? -1 : 1;
  std::ranges::stable_sort(rows, {}, [&](const Row& row) {
    const auto mean = row.metrics.front().mean();
    return std::pair(!mean.has_value(), sign * mean.value_or(0));
  });

  std::vector<std::vector<std::string>> cells(1);
  for (const auto& key : keys) cells.front().push_back(short_name(key, keys));
  cells.front().emplace_back("done");
  cells.front().insert(cells.front().end(), metrics.begin(), metrics.end());
  for (const auto& row : rows) {
    auto& line = cells.emplace_back(row.keys);
    for (auto& value : line)
      if (value.empty()) value = "-";
    line.push_back(fmt::format("{}/{}", row.done, row.runs));
    for (const auto& sample : row.metrics) line.push_back(sample.text());
  }
  return aligned(cells);
}

}  // namespace troupe::grid
