/// What a run is doing, from the lines of its metrics.jsonl (docs/formats/metrics.md). Pure: no clock, no file. Thread rule: one thread at a
/// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiment/position/run_position.hpp"

namespace troupe::service {

class RunState {
 public:
  /// Seconds over which rates are measured.
  static constexpr double kWindow = 10;
  static constexpr std::size_t kNotes = 50;
  static constexpr std::size_t kMembers = 1000;  // events

  /// A line without its newline. What is no JSON object, or of an unknown kind, is ignored. Returns its kind, empty without one.
  std::string read(std::string_view line);

  /// `since_last_line`: seconds since the latest line was written; of a run that has ended 0. `status` and `position`: as in the answer.
  [[nodiscard]] nlohmann::ordered_json json(double since_last_line, std::string_view status,
                                            std::uint64_t position) const;
  /// "done", or the name of the error that ended the run; empty: it has not ended.
  [[nodiscard]] const std::string& outcome() const noexcept { return outcome_; }

 private:
  struct Moment {
    double t = 0, samples = 0;
  };
  struct Member {
    double t = 0;  // of its last report
    std::deque<Moment> recent;
    nlohmann::ordered_json report;
    nlohmann::ordered_json waits = nlohmann::ordered_json::array(), traffic = waits;  // the last that it reported
    nlohmann::ordered_json loss, accuracy, distance;                                  // the last that it reported
  };
  void started(const nlohmann::ordered_json& line);
  void worker(const nlohmann::ordered_json& line);
  void member(nlohmann::ordered_json event);
  void ledger(const nlohmann::ordered_json& line);
  void evaluated(const nlohmann::ordered_json& line, const std::string& split, const nlohmann::ordered_json& scores);
  [[nodiscard]] static double rate(const Member& member);
  [[nodiscard]] double computed() const;  // samples, by all workers in this session
  [[nodiscard]] double epochs_done() const;
  [[nodiscard]] double wall_s(double t) const;  // of all sessions, at this second of the latest
  [[nodiscard]] nlohmann::ordered_json waits() const;
  [[nodiscard]] nlohmann::ordered_json staleness() const;

  double t_ = 0, epoch_ = 0, epochs_ = 0, epoch_samples_ = 0;
  experiment::RunPosition epochs_done_;
  double samples_before_ = 0;   // of the model that this session began with
  double computed_before_ = 0;  // by earlier sessions, also what was lost with them; as the ledger says
  struct {
    double t = 0, seconds = 0;
  } wall_;  // of all sessions, at the latest line that tells
  std::int64_t servers_ = 0;
  std::int64_t steps_ = 0, steps_before_ = 0;  // at the last epoch's end; at the end before this session
  std::string outcome_;
  nlohmann::ordered_json error_;
  std::map<std::int64_t, Member> workers_;  // by rank
  std::deque<nlohmann::ordered_json> notes_;
  std::deque<nlohmann::ordered_json> members_;
  nlohmann::ordered_json ledger_;                              // the last line
  std::map<std::string, nlohmann::ordered_json> evaluations_;  // by split
};

}  // namespace troupe::service
