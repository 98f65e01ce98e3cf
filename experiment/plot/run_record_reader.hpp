/// Reads the lines of a metrics.jsonl (docs/formats/metrics.md) into a run's record. Pure: no file.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "experiment/plot/run_record.hpp"
#include "experiment/position/run_position.hpp"

namespace troupe::plot {

/// In order, from the first line on. Throws nlohmann::json::exception where a key has another type.
class RunRecordReader {
 public:
  /// The record outlives it.
  explicit RunRecordReader(RunRecord& run) : run_(run) {}

  void read(const nlohmann::json& line);
  /// The seconds and epochs of what follows the last line that tells them.
  void end();

 private:
  void started(const nlohmann::json& line);
  void worker(const nlohmann::json& line);
  void epoch(const nlohmann::json& line);
  void evaluation(const nlohmann::json& line);
  void ledger(const nlohmann::json& line);
  void ended(const nlohmann::json& line);

  // Epochs.
  [[nodiscard]] double computed() const;  // samples, by all workers in this session
  void learn(double epochs, double computed);
  template <class Place>
  void place_until(double computed, const Place& place);
  void end_epoch(double epoch);

  // Seconds. A worker's own times leave out evaluations and checkpoints, as the training time does, but also small gaps between steps. So they
  // are stretched to the training time that the next evaluation reports.
  [[nodiscard]] double busy_s() const;
  void begin_seconds(double train_s);
  void place_since_anchor(double factor);

  struct Worker {
    double samples = 0, busy_s = 0;
  };
  /// Where the seconds of the training points are known up to.
  struct Anchor {
    std::size_t first = 0;  // point after it
    double seconds = 0;
    double busy_s = 0;
  };
  /// A training point whose epoch is not known yet.
  struct Open {
    std::size_t point = 0;
    double computed = 0;
  };

  RunRecord& run_;
  double before_ = 0, latest_ = 0;  // training time of earlier processes, and up to now
  bool knows_position_ = false;     // this process said where it began
  double samples_before_ = std::numeric_limits<double>::quiet_NaN();
  experiment::RunPosition position_;  // of this session
  bool has_ledger_ = false;           // this session
  std::deque<Open> open_;
  std::map<std::size_t, Worker> workers_;  // by rank
  Anchor anchor_;
};

}  // namespace troupe::plot
