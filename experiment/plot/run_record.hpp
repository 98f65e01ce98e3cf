/// The data of a run's pictures, from metrics.jsonl and summary.json of its directory. Reads only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::plot {

/// Training within an epoch: the mean over the samples of one report, or of several.
struct TrainPoint {
  double epoch = 0;    // epochs done, with the fraction of the current one
  double seconds = 0;  // of training, as in EpochPoint
  double samples = 0;
  double loss = 0, accuracy = 0;  // NaN where not finite
};

/// One evaluation on the test split at an epoch's end.
struct EpochPoint {
  double epoch = 0;
  double seconds = 0;                            // training time since the run's begin; grows over resumes
  double train_loss = 0, test_loss = 0;          // NaN where not finite
  double train_accuracy = 0, test_accuracy = 0;  // in [0, 1]
};

/// A score between epochs' ends, or on the validation split.
struct ScorePoint {
  double epoch = 0;               // epochs done, with the fraction of the current one
  double seconds = 0;             // of training, as in EpochPoint
  double loss = 0, accuracy = 0;  // NaN where not finite
};

/// Row w: waits of worker w; columns: the awaited workers, then servers.
struct Waits {
  std::size_t workers = 0, servers = 0;
  std::vector<std::vector<double>> seconds;
};

/// Bin k counts updates with edges[k] ≤ staleness < edges[k + 1]; the last bin is open.
struct Staleness {
  std::vector<double> edges;
  std::vector<std::vector<double>> workers;  // [workers][bins]
};

struct RunRecord {
  std::string label;  // the directory's name without its time
  std::string strategy;
  std::string outcome;       // "done", or the name of the error that ended it; empty: it trains, or was killed
  double epoch_samples = 0;  // of the training split, in each epoch; 0: the log does not say
  std::vector<EpochPoint> epochs;
  std::vector<EpochPoint> deviations;  // of average(): standard deviations of `epochs`; empty: of one run
  std::vector<TrainPoint> training;    // in order; empty: the workers' reports are missing
  std::vector<ScorePoint> validation;  // on the validation split, in order
  std::vector<ScorePoint> test;        // on the test split within epochs, in order
  std::optional<Waits> waits;          // none when the summary has none, or no worker waited
  std::optional<Staleness> staleness;  // none when the summary has none, or no worker pushed
};

/// Errc::config when the directory has no metrics.jsonl; corrupt when a line of it is no JSON object, but for a last one that was cut off, or
/// when summary.json is none.
[[nodiscard]] core::Result<RunRecord> read_run(const std::string& directory);

/// The runs of these directories, in that order; labels differ, as tell_apart() says. Errors as read_run().
[[nodiscard]] core::Result<std::vector<RunRecord>> read_runs(const std::vector<std::string>& directories);

/// The mean of runs that differ only in their seeds: epochs that all of them have, with deviations; training of all, in order. Of several
/// runs without `validation` and `test`.
[[nodiscard]] RunRecord average(const std::vector<RunRecord>& runs, const std::string& label);

/// The mean and the sample standard deviation; NaN without numbers; deviation 0 for one number.
struct Mean {
  double mean, deviation;
};
[[nodiscard]] Mean mean_of(const std::vector<double>& numbers);

}  // namespace troupe::plot
