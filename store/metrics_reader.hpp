/// Reads the lines that were appended to a metrics.jsonl since it was last read (docs/formats/metrics.md).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "experiment/position/run_position.hpp"

namespace troupe::store {

/// A value of a curve.
struct Point {
  std::string series;  // "test.loss", "validation.accuracy", "step.loss": of steps, between evaluations
  double epoch = 0;    // epochs done, with the fraction of the current one
  double seconds = 0;  // training time since the run began
  double value = 0;    // finite
};

/// What a read found. First remove all earlier points after epoch `kept`, which a resumed run trains again; then add `points`.
struct NewPoints {
  double kept;  // an epoch; infinity: remove none
  std::vector<Point> points;
};

/// What has been read of one file. Thread rule: one thread at a time.
class MetricsReader {
 public:
  MetricsReader() = default;
  /// Continues from state(). Starts from the beginning if `state` is not one.
  explicit MetricsReader(std::string_view state);

  /// `lines`: whole ones, each with its newline. Lines that are not JSON are counted and ignored. `monitor`: run.monitor, the score that
  /// decides which evaluation on the validation split is the best.
  [[nodiscard]] NewPoints read(std::string_view lines, std::string_view monitor = "accuracy");

  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::int64_t sessions() const noexcept { return sessions_; }
  [[nodiscard]] std::int64_t bad_lines() const noexcept { return bad_lines_; }
  /// "done", or the name of the error that ended the run; empty: it has not ended.
  [[nodiscard]] const std::string& outcome() const noexcept { return outcome_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// What is known of a run that is not over, with summary.json's keys.
  [[nodiscard]] const nlohmann::ordered_json& so_far() const noexcept { return so_far_; }

 private:
  /// Throws nlohmann::json::exception.
  void restore(const nlohmann::json& state);
  void read_line(std::string_view line, std::string_view monitor, NewPoints& found);
  void started(const nlohmann::json& line, NewPoints& found);
  void worker(const nlohmann::json& line, NewPoints& found);
  void epoch(const nlohmann::json& line, NewPoints& found);
  void evaluation(const nlohmann::json& line, std::string_view monitor, NewPoints& found);
  void keep_best(const nlohmann::json& line, const char* monitor);
  void ledger(const nlohmann::json& line);
  void evaluated(const nlohmann::json& line);
  void ended(const nlohmann::json& line);
  void mark(double epoch, double seconds);
  [[nodiscard]] double computed() const;  // samples, by all workers in this session

  struct Worker {
    double samples = 0, busy_s = 0;
  };
  std::int64_t sessions_ = 0, bad_lines_ = 0;
  std::string outcome_, error_;
  experiment::RunPosition epochs_done_;
  double reached_ = 0;                      // epochs: of the latest point of a step
  double samples_before_ = 0;               // by the sessions before
  double seconds_ = 0;                      // of training, by the sessions before
  std::map<std::int64_t, Worker> workers_;  // by rank, in this session
  /// The latest moments of which both are known: where a line of an older program does not say it, a session begins with the longest of them.
  struct Mark {
    double epoch = 0, seconds = 0;
  };
  std::deque<Mark> marks_;
  nlohmann::ordered_json so_far_ = nlohmann::ordered_json::object();
};

}  // namespace troupe::store
