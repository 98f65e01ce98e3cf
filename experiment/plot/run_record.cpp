#include "experiment/plot/run_record.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiment/plot/run_labels.hpp"

namespace troupe::plot {
namespace {

using Json = nlohmann::json;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kNothing;
}

double number_in(const Json& json, const char* group, const char* key) {
  const auto found = json.find(group);
  return found != json.end() && found->is_object() ? number_in(*found, key) : kNothing;
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

/// Reads metrics.jsonl line by line.
class MetricsReader {
 public:
  explicit MetricsReader(RunRecord& run) : run_(run) {}

  void read(const Json& json) {
    const auto kind = json.value("kind", "");
    if (kind == "started") started(json);
    if (kind == "worker") worker(json);
    if (kind == "epoch") epoch(json);
    if (kind == "evaluation") evaluation(json);
    if (kind == "ended") ended(json);
  }
  /// The seconds of what follows the last evaluation.
  void end() { place_since_anchor(1); }

 private:
  /// A process begins or continues the run. Training after its checkpoint is done again.
  void started(const Json& json) {
    run_.strategy = json.value("strategy", run_.strategy);
    run_.outcome.clear();
    end();
    if (const double position = number_in(json, "epoch_position"); std::isfinite(position)) {
      constexpr double kSame = 1e-9;
      const auto later = [&](const auto& old) { return old.epoch > position + kSame; };
      std::erase_if(run_.training, later);
      std::erase_if(run_.validation, later);
      std::erase_if(run_.test, later);
      position_ = position;
    }
    epoch_samples_ = number_in(json, "epoch_samples");
    if (epoch_samples_ > 0) run_.epoch_samples = epoch_samples_;
    workers_.clear();
    anchor_ = {run_.training.size(), run_.training.empty() ? 0 : run_.training.back().seconds, 0};
  }

  void worker(const Json& json) {
    const auto recent = json.find("recent");
    if (!(epoch_samples_ > 0) || recent == json.end() || !recent->is_object()) return;
    const double rank = number_in(json, "worker");
    if (!(rank >= 0)) return;
    auto& worker = workers_[static_cast<std::size_t>(rank)];
    worker.samples = number_in(json, "samples");
    worker.busy_s = number_in(json, "compute_s") + number_in(json, "exchange_s") + number_in(json, "wait_s") +
                    number_in(json, "load_s");
    TrainPoint point;
    point.samples = number_in(*recent, "samples");
    if (!(point.samples > 0)) return;
    point.epoch = position();
    point.seconds = busy_s();
    point.loss = number_in(*recent, "loss");
    point.accuracy = number_in(*recent, "accuracy");
    if (std::isfinite(point.epoch) && std::isfinite(point.seconds)) run_.training.push_back(point);
  }

  void epoch(const Json& json) {
    EpochPoint point;
    point.epoch = number_in(json, "epoch");
    // A resume may begin before epochs that were already evaluated, and may continue or restart its time.
    std::erase_if(run_.epochs, [&](const EpochPoint& old) { return old.epoch >= point.epoch; });
    const double train_s = number_in(json, "train_s");
    if (before_ + train_s < latest_) before_ = run_.epochs.empty() ? 0 : run_.epochs.back().seconds;
    point.seconds = latest_ = before_ + train_s;
    point.train_loss = number_in(json, "train", "loss");
    point.train_accuracy = number_in(json, "train", "accuracy");
    point.test_loss = number_in(json, "test", "loss");
    point.test_accuracy = number_in(json, "test", "accuracy");
    run_.epochs.push_back(point);
    end_epoch(point.epoch);
    const double counted = busy_s() - anchor_.busy_s;
    place_since_anchor(counted > 0 ? std::max(0.0, point.seconds - anchor_.seconds) / counted : 0);
    anchor_ = {run_.training.size(), point.seconds, busy_s()};
  }

  /// Programs that write such lines count train_s over the run's whole life.
  void evaluation(const Json& json) {
    const ScorePoint point{number_in(json, "epoch"), number_in(json, "train_s"), number_in(json, "loss"),
                           number_in(json, "accuracy")};
    if (!std::isfinite(point.epoch) || !std::isfinite(point.seconds)) return;
    (json.value("split", "") == "validation" ? run_.validation : run_.test).push_back(point);
  }

  void ended(const Json& json) {
    const auto error = json.find("error");
    run_.outcome = error != json.end() && error->is_object() ? error->value("code", "failed") : "done";
  }

  [[nodiscard]] double position() const {
    double samples = 0;
    for (const auto& [rank, worker] : workers_) samples += worker.samples;
    return position_ + samples / epoch_samples_;
  }

  /// The last batches of an epoch may repeat samples, so workers count a little more than an epoch: the next one begins at its own number.
  void end_epoch(double epoch) {
    constexpr double kLittle = 0.25;  // more is no repetition: the evaluation of a run that stopped within an epoch
    const double more = position() - epoch;
    if (!(more > 0 && more < kLittle)) return;
    for (auto k = anchor_.first; k < run_.training.size(); ++k)
      run_.training[k].epoch = std::min(run_.training[k].epoch, epoch);
    position_ -= more;
  }

  /// A worker's own times leave out evaluations and checkpoints, as the training time does, but also small gaps between steps. So they are
  /// stretched to the training time that the next evaluation reports.
  [[nodiscard]] double busy_s() const {
    double most = 0;
    for (const auto& [rank, worker] : workers_) most = std::max(most, worker.busy_s);
    return most;
  }
  void place_since_anchor(double factor) {
    for (auto k = anchor_.first; k < run_.training.size(); ++k) {
      auto& seconds = run_.training[k].seconds;
      seconds = anchor_.seconds + std::max(0.0, seconds - anchor_.busy_s) * factor;
    }
  }

  struct Worker {
    double samples = 0, busy_s = 0;
  };
  /// Where the seconds of the training points are known up to.
  struct Anchor {
    std::size_t first = 0;  // point after it
    double seconds = 0;
    double busy_s = 0;
  };

  RunRecord& run_;
  double before_ = 0, latest_ = 0;  // training time of earlier processes, and up to now
  double position_ = 0;             // epochs done when this process began
  double epoch_samples_ = 0;
  std::map<std::size_t, Worker> workers_;  // by rank
  Anchor anchor_;
};

core::Error damaged(const std::string& what) {
  return {core::Errc::corrupt, fmt::format("{}: it is damaged: leave this run out, or repair the file", what)};
}

/// A program that was killed may have cut off the last line, which then has no end. Other lines are whole.
core::Result<void> read_metrics(std::ifstream& file, const std::string& path, RunRecord& run) {
  MetricsReader reader(run);
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
