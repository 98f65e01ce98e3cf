/// The text output of a run: summary.json (docs/formats/summary.md) and the lines of metrics.jsonl (docs/formats/metrics.md). Every
/// function returns one JSON object on one line, without a newline; a number that is not finite becomes null, bytes that are not UTF-8
/// become U+FFFD. to_json(const Summary&) is declared beside Summary (experiment/reports.hpp).
/// Thread rule: pure functions.
#pragma once

#include <string>

#include "experiment/reports.hpp"

namespace troupe::experiment {

/// Lines of metrics.jsonl. `at_s`: seconds since the process began this run, on the run's clock.
[[nodiscard]] std::string to_json(const RunStarted& started, double at_s);  // kind "started"
/// kind "worker". Without `tables` it has neither `waits` nor `traffic` (WorkerTables).
[[nodiscard]] std::string to_json(const WorkerProgress& progress, double at_s, bool tables = true);
[[nodiscard]] std::string to_json(const EpochReport& report, double at_s);       // kind "epoch"
[[nodiscard]] std::string to_json(const EvaluationReport& report, double at_s);  // kind "evaluation"
[[nodiscard]] std::string to_json(const MemberReport& report, double at_s);      // kind "member"
[[nodiscard]] std::string to_json(const LedgerReport& report, double at_s);      // kind "ledger"
[[nodiscard]] std::string to_json(const Note& note, double at_s);                // kind "note"
[[nodiscard]] std::string to_json(const RunEnd& end, double at_s);               // kind "ended"

/// The times of the workers, averaged over all; all zero without workers.
struct TimeShares {
  double compute_s = 0;
  double exchange_s = 0;
  double wait_s = 0;
  double load_s = 0;
  [[nodiscard]] double total_s() const noexcept { return compute_s + exchange_s + wait_s + load_s; }
};
[[nodiscard]] TimeShares average_time(const std::vector<WorkerProgress>& workers);

/// Mean staleness over a worker's answers; 0 without answers.
[[nodiscard]] double mean_staleness(const WorkerProgress& progress) noexcept;

}  // namespace troupe::experiment
