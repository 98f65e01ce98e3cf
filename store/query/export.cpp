#include "store/query/export.hpp"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::store {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_object(const Values& values) {
  auto object = OrderedJson::object();
  for (const auto& [key, value] : values) object[key] = json_of(value);
  return object;
}

/// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string json_line(const RunDetails& run, const std::vector<Point>& curves) {
  auto lines = OrderedJson::object();
  for (const auto& point : curves) lines[point.series].push_back({point.epoch, point.seconds, point.value});
  auto lineage = OrderedJson::object();
  for (const auto& [kind, source] : run.lineage) lineage[kind] = source;
  const OrderedJson all{{"run", run.path},
                        {"name", run.name},
                        {"started", run.started},
                        {"status", run.status},
                        {"error", run.error},
                        {"tags", run.notes.tags},
                        {"note", run.notes.note},
                        {"lineage", lineage},
                        {"options", json_object(run.options)},
                        {"summary", OrderedJson::parse(run.summary, nullptr, false)},
                        {"curves", lines}};
  return all.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string csv_of(const std::vector<RunDetails>& runs) {
  std::set<std::string> options, results;
  for (const auto& run : runs) {
    for (const auto& [key, value] : run.options) options.insert(key);
    for (const auto& [key, value] : run.results) results.insert(key);
  }
  for (const auto& key : options) results.erase(key);
  results.erase("run");  // the directory has its own column
  options.erase("run.name");
  std::vector<std::string> row{"run", "name", "started", "status", "grid", "tags", "note"};
  for (const auto* keys : {&options, &results})
    for (const auto& key : *keys) row.push_back(csv_field(key));
  auto text = fmt::format("{}\n", fmt::join(row, ","));
  const auto value_in = [](const Values& values, const std::string& key) {
    const auto* found = find(values, key);
    return found == nullptr ? std::string() : csv_field(text_of(*found));
  };
  for (const auto& run : runs) {
    row = {run.path,      run.name, run.started,
           run.status,    run.grid, fmt::format("{}", fmt::join(run.notes.tags, " ")),
           run.notes.note};
    for (auto& field : row) field = csv_field(field);
    for (const auto& key : options) row.push_back(value_in(run.options, key));
    for (const auto& key : results) row.push_back(value_in(run.results, key));
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return text;
}

}  // namespace troupe::store
