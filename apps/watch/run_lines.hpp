/// The lines of a run as `troupe train` prints them, from the lines of its metrics.jsonl. One thread.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/clock.hpp"
#include "experiment/report/console.hpp"
#include "experiment/reports.hpp"

namespace troupe::apps {

class RunLines {
 public:
  /// `stream` and `clock` outlive it.
  RunLines(std::FILE* stream, const core::Clock& clock) : stream_(stream), clock_(&clock) {}

  /// A line other than `ended`. What is none is ignored.
  void read(const nlohmann::ordered_json& line);
  /// The line `ended`: prints the closing table. `summary`: the run's summary.json, if it is of this end; null: what the lines have said.
  void read_end(const nlohmann::ordered_json& line, const nlohmann::ordered_json& summary);

 private:
  report::Console& console();
  [[nodiscard]] experiment::Summary summary_of(const nlohmann::ordered_json& end,
                                               const nlohmann::ordered_json& file) const;

  std::FILE* stream_;
  const core::Clock* clock_;
  std::unique_ptr<report::Console> console_;  // of this session of the run
  experiment::RunStarted started_;
  std::optional<experiment::EpochReport> epoch_;                 // the latest
  std::map<std::uint32_t, experiment::WorkerProgress> workers_;  // by rank
};

// Lines as the recorder's reports. Missing values are 0, or unknown.
[[nodiscard]] experiment::RunStarted started_of(const nlohmann::ordered_json& line);
[[nodiscard]] experiment::WorkerProgress progress_of(const nlohmann::ordered_json& line);
[[nodiscard]] experiment::EpochReport epoch_of(const nlohmann::ordered_json& line);
[[nodiscard]] experiment::EvaluationReport evaluation_of(const nlohmann::ordered_json& line);
[[nodiscard]] experiment::LedgerReport ledger_of(const nlohmann::ordered_json& line);
[[nodiscard]] experiment::Note note_of(const nlohmann::ordered_json& line);

/// The error with which a line `ended` says that the run ended; nothing: with none. A code that this program does not know is internal.
[[nodiscard]] std::optional<core::Error> error_of_end(const nlohmann::ordered_json& line);

}  // namespace troupe::apps
