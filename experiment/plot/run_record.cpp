#include "experiment/plot/run_record.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiment/plot/run_labels.hpp"
#include "experiment/plot/run_record_reader.hpp"

namespace troupe::plot {
namespace {

using Json = nlohmann::json;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

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

core::Error damaged(const std::string& what) {
  return {core::Errc::corrupt, fmt::format("{}: it is damaged: leave this run out, or repair the file", what)};
}

/// A program that was killed may have cut off the last line, which then has no end. Other lines are whole.
core::Result<void> read_metrics(std::ifstream& file, const std::string& path, RunRecord& run) {
  RunRecordReader reader(run);
  std::size_t number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    const auto json = Json::parse(line, nullptr, false);
    if (!json.is_object() && file.eof()) break;
    if (!json.is_object()) return tl::unexpected(damaged(fmt::format("{}, line {}", path, number)));
    try {
      reader.read(json);
    } catch (const Json::exception&) {  // a key of another type
      return tl::unexpected(damaged(fmt::format("{}, line {}", path, number)));
    }
  }
  reader.end();
  return {};
}

void read_summary(const Json& json, RunRecord& run) {
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

/// It is replaced as a whole, so a part of one is damage. None: the run trains, or was killed.
core::Result<void> read_summary(const std::string& path, RunRecord& run) {
  std::ifstream file(path);
  if (!file) return {};
  const auto json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return tl::unexpected(damaged(path));
  try {
    read_summary(json, run);
  } catch (const Json::exception&) {  // a key of another type
    return tl::unexpected(damaged(path));
  }
  return {};
}

}  // namespace

core::Result<RunRecord> read_run(const std::string& directory) {
  std::ifstream metrics(directory + "/metrics.jsonl");
  if (!metrics)
    return core::fail(
        core::Errc::config,
        fmt::format("{} is neither a run's directory (no metrics.jsonl) nor a grid's (no results.jsonl)", directory));
  RunRecord run;
  run.label = label_of(directory);
  if (auto read = read_metrics(metrics, directory + "/metrics.jsonl", run); !read) return tl::unexpected(read.error());
  if (auto read = read_summary(directory + "/summary.json", run); !read) return tl::unexpected(read.error());
  return run;
}

core::Result<std::vector<RunRecord>> read_runs(const std::vector<std::string>& directories) {
  std::vector<RunRecord> runs;
  for (const auto& directory : directories) {
    auto run = read_run(directory);
    if (!run) return tl::unexpected(run.error());
    runs.push_back(std::move(*run));
  }
  tell_apart(runs, directories);
  return runs;
}

Mean mean_of(const std::vector<double>& numbers) {
  if (numbers.empty()) return {kNothing, kNothing};
  double sum = 0, squares = 0;
  for (const double value : numbers) sum += value;
  const double mean = sum / static_cast<double>(numbers.size());
  for (const double value : numbers) squares += (value - mean) * (value - mean);
  return {mean, numbers.size() > 1 ? std::sqrt(squares / static_cast<double>(numbers.size() - 1)) : 0};
}

namespace {

/// Points of all runs in order of their epochs, as many together as there are runs. Each run's seconds are stretched to the mean length, else a
/// curve over seconds would go back and forth between fast and slow runs.
std::vector<TrainPoint> average_training(const std::vector<RunRecord>& runs) {
  std::vector<double> lengths;
  for (const auto& run : runs)
    if (!run.training.empty() && run.training.back().seconds > 0) lengths.push_back(run.training.back().seconds);
  const double length = mean_of(lengths).mean;
  std::vector<TrainPoint> all;
  for (const auto& run : runs)
    for (auto point : run.training) {
      if (run.training.back().seconds > 0) point.seconds *= length / run.training.back().seconds;
      all.push_back(point);
    }
  std::ranges::stable_sort(all, {}, &TrainPoint::epoch);
  std::vector<TrainPoint> means;
  for (std::size_t first = 0; first < all.size(); first += runs.size()) {
    TrainPoint mean;
    for (auto k = first; k < std::min(first + runs.size(), all.size()); ++k) {
      mean.samples += all[k].samples;
      const double share = all[k].samples / mean.samples;
      for (const auto member : {&TrainPoint::epoch, &TrainPoint::seconds, &TrainPoint::loss, &TrainPoint::accuracy})
        mean.*member += share * (all[k].*member - mean.*member);
    }
    if (!means.empty()) mean.seconds = std::max(mean.seconds, means.back().seconds);
    means.push_back(mean);
  }
  return means;
}

}  // namespace

RunRecord average(const std::vector<RunRecord>& runs, const std::string& label) {
  if (runs.size() == 1) {
    auto only = runs.front();
    only.label = label;
    return only;
  }
  RunRecord mean;
  mean.label = label;
  if (runs.empty()) return mean;
  mean.strategy = runs.front().strategy;
  mean.epoch_samples = runs.front().epoch_samples;  // seeds change no data set's size
  for (const auto& point : runs.front().epochs) {
    std::vector<const EpochPoint*> same;
    for (const auto& run : runs)
      for (const auto& other : run.epochs)
        if (other.epoch == point.epoch) same.push_back(&other);
    if (same.size() != runs.size()) continue;
    EpochPoint average{.epoch = point.epoch}, deviation{.epoch = point.epoch};
    for (const auto member : {&EpochPoint::seconds, &EpochPoint::train_loss, &EpochPoint::test_loss,
                              &EpochPoint::train_accuracy, &EpochPoint::test_accuracy}) {
      std::vector<double> values;
      values.reserve(same.size());
      for (const auto* other : same) values.push_back(other->*member);
      const auto of_all = mean_of(values);
      average.*member = of_all.mean;
      deviation.*member = of_all.deviation;
    }
    mean.epochs.push_back(average);
    mean.deviations.push_back(deviation);
  }
  mean.training = average_training(runs);
  return mean;
}

}  // namespace troupe::plot
