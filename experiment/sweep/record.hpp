/// A sweep as its readers see it: sweep.json in its directory (docs/formats/grid.md), which the sweep replaces whole after every step. Plots
/// and the service need nothing else. Values; pure functions, except read_record().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "experiment/sweep/search.hpp"

namespace troupe::sweep {

inline constexpr const char* kRecordFile = "sweep.json";

struct TrialRecord {
  std::size_t trial = 0;
  std::string name{};                                           // run.name
  std::vector<std::pair<std::string, std::string>> settings{};  // key and value as TOML, in the order of the parameters
  std::vector<std::optional<double>> scores{};                  // by rung reached; none: diverged
  std::optional<std::int64_t> training_to{};  // epochs of the rung that it trains to, now or when the sweep goes on
  std::string status{};                       // of the run, as in results.jsonl
  std::string directory{};                    // empty: it has none yet
  std::vector<double> scored_s{};             // when each score came, in seconds of the sweep
  std::optional<double> diverged_after{};     // epochs in all when it diverged; none: it has not, or not known
};

struct Record {
  std::string file;  // the grid file
  std::string metric;
  bool higher_is_better = true;
  std::string method;    // "tpe" | "random"
  std::string schedule;  // "asha" | "none"
  std::vector<std::int64_t> rungs;
  std::size_t most_trials = 0;   // 0: no limit
  std::int64_t most_epochs = 0;  // over all trials; 0: no limit
  double most_hours = 0;         // 0: no limit
  double elapsed_s = 0;          // of the sweep, earlier sessions included
  std::string state;             // "running" | "interrupted" | "finished"
  std::vector<Parameter> parameters;
  std::vector<TrialRecord> trials;
  std::vector<std::size_t> ranking;  // trials, best first (Search::ranking)
  std::vector<double> importance;    // by parameter; empty: too few results
};

[[nodiscard]] nlohmann::ordered_json to_json(const Record& record);
/// Errc::corrupt: not what to_json() writes. `where` is named in the message.
[[nodiscard]] core::Result<Record> parse_record(const std::string& text, const std::string& where);
/// The record in a sweep's directory; none: it is no sweep's. Errc::io, corrupt.
[[nodiscard]] core::Result<std::optional<Record>> read_record(const std::string& directory);

/// Epochs trained, over all trials. No epoch is trained twice.
[[nodiscard]] double epochs_trained(const Record& record);
/// The scores in the order in which they came.
struct Scored {
  double t = 0;       ///< seconds of the sweep
  double epochs = 0;  ///< trained until then, over all trials
  std::size_t trial = 0, rung = 0;
  std::optional<double> score;
  std::optional<double> best;  ///< until then, over all rungs
};
[[nodiscard]] std::vector<Scored> history(const Record& record);
/// The score at the highest rung that the trial has reached; none: it has none, or has diverged.
[[nodiscard]] std::optional<double> score_of(const TrialRecord& trial);

}  // namespace troupe::sweep
