#include "experiment/plot/run_record.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::plot {
namespace {

using Json = nlohmann::json;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kNothing;
}

double number(const Json& json, const char* group, const char* key) {
  const auto found = json.find(group);
  return found != json.end() && found->is_object() ? number(*found, key) : kNothing;
}

std::vector<std::vector<double>> table(const Json& json) {
  std::vector<std::vector<double>> rows;
  if (!json.is_array()) return rows;
  for (const auto& row : json) {
    auto& values = rows.emplace_back();
    if (!row.is_array()) continue;
    for (const auto& value : row) values.push_back(value.is_number() ? value.get<double>() : 0.0);
  }
  return rows;
}

bool is_rectangle(const std::vector<std::vector<double>>& rows, std::size_t count, std::size_t width) {
  return rows.size() == count && std::ranges::all_of(rows, [&](const auto& row) { return row.size() == width; });
}

double total(const std::vector<std::vector<double>>& rows) {
  double sum = 0;
  for (const auto& row : rows) sum = std::accumulate(row.begin(), row.end(), sum);
  return sum;
}

void read_epochs(std::ifstream& file, RunRecord& run) {
  double before = 0, latest = 0;  // training time of earlier processes, and up to now
  for (std::string line; std::getline(file, line);) {
    const auto json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto kind = json.value("kind", "");
    if (kind == "started") run.strategy = json.value("strategy", run.strategy);
    if (kind != "epoch") continue;
    EpochPoint point;
    point.epoch = number(json, "epoch");
    // A resume may begin before epochs that were already evaluated, and may continue or restart its time.
    std::erase_if(run.epochs, [&](const EpochPoint& old) { return old.epoch >= point.epoch; });
    const double train_s = number(json, "train_s");
    if (before + train_s < latest) before = run.epochs.empty() ? 0 : run.epochs.back().seconds;
    point.seconds = latest = before + train_s;
    point.train_loss = number(json, "train", "loss");
    point.train_accuracy = number(json, "train", "accuracy");
    point.test_loss = number(json, "test", "loss");
    point.test_accuracy = number(json, "test", "accuracy");
    run.epochs.push_back(point);
  }
}

void read_summary(const std::string& path, RunRecord& run) {
  std::ifstream file(path);
  const auto json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return;
  run.strategy = json.value("strategy", run.strategy);
  if (const auto found = json.find("waits"); found != json.end() && found->is_object()) {
    Waits waits{found->value("workers", std::size_t{0}), found->value("servers", std::size_t{0}),
                table(found->value("seconds", Json::array()))};
    if (is_rectangle(waits.seconds, waits.workers, waits.workers + waits.servers) && total(waits.seconds) > 0)
      run.waits = std::move(waits);
  }
  if (const auto found = json.find("staleness"); found != json.end() && found->is_object()) {
    Staleness staleness{{}, table(found->value("workers", Json::array()))};
    for (const auto& edge : found->value("edges", Json::array())) staleness.edges.push_back(edge.get<double>());
    for (auto& row : staleness.workers)
      if (row.empty()) row.resize(staleness.edges.size());  // a worker without updates
    if (!staleness.workers.empty() &&
        is_rectangle(staleness.workers, staleness.workers.size(), staleness.edges.size()) &&
        total(staleness.workers) > 0)
      run.staleness = std::move(staleness);
  }
}

}  // namespace

std::string label_of(const std::string& directory) {
  std::filesystem::path path(directory);
  if (!path.has_filename()) path = path.parent_path();
  const auto name = path.filename().string();
  constexpr std::string_view kTime = "dddddddd-dddddd-";
  if (name.size() <= kTime.size()) return name;
  for (std::size_t i = 0; i < kTime.size(); ++i)
    if (kTime[i] == 'd' ? std::isdigit(static_cast<unsigned char>(name[i])) == 0 : name[i] != kTime[i]) return name;
  return name.substr(kTime.size());
}

core::Result<RunRecord> read_run(const std::string& directory) {
  std::ifstream metrics(directory + "/metrics.jsonl");
  if (!metrics)
    return core::fail(
        core::Errc::config,
        fmt::format("{} is neither a run's directory (no metrics.jsonl) nor a grid's (no results.jsonl)", directory));
  RunRecord run;
  run.label = label_of(directory);
  read_epochs(metrics, run);
  read_summary(directory + "/summary.json", run);
  return run;
}

}  // namespace troupe::plot
