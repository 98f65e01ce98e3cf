/// Runs of a store in the forms that other programs read (docs/runs.md). Thread rule: pure functions; a writer has one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "store/query/details.hpp"

namespace troupe::store {

/// A run with all of its values and curves, as one line of JSON.
[[nodiscard]] std::string json_line(const RunDetails& run, const std::vector<Point>& curves);

/// A row per run; columns: run, name, started, status, grid, tags, note, then every option and result that a run has, by key. RFC 4180;
/// empty for what a run does not have.
[[nodiscard]] std::string csv_of(const std::vector<RunDetails>& runs);

/// Writes one experiment of MLflow's file store: `directory`/0/… as `mlflow ui --backend-store-uri DIRECTORY` reads it. Run ids follow from
/// `origin`, the store's directory, and the run's. Times: `started` in the local time zone of this process.
class MlflowWriter {
 public:
  /// Makes the directory. Errc::usage: it exists and is not empty; io, no_space.
  [[nodiscard]] static core::Result<MlflowWriter> create(const std::string& directory, const std::string& origin);
  [[nodiscard]] core::Result<void> add(const RunDetails& run, const std::vector<Point>& curves) const;

 private:
  MlflowWriter(std::string directory, std::string origin)
      : directory_(std::move(directory)), origin_(std::move(origin)) {}
  std::string directory_, origin_;
};

/// Writes offline runs of W&B: `directory`/offline-run-TIME-ID/run-ID.wandb each, for `wandb sync DIRECTORY/offline-run-*`. The form is that
/// of wandb's own source (wandb/sdk/internal/datastore.py, wandb/proto/wandb_internal.proto). Ids and times as MlflowWriter.
class WandbWriter {
 public:
  /// Errc::usage: the directory exists and is not empty. The first run makes it.
  [[nodiscard]] static core::Result<WandbWriter> create(const std::string& directory, const std::string& origin);
  /// Errc::io, no_space.
  [[nodiscard]] core::Result<void> add(const RunDetails& run, const std::vector<Point>& curves) const;

 private:
  WandbWriter(std::string directory, std::string origin)
      : directory_(std::move(directory)), origin_(std::move(origin)) {}
  std::string directory_, origin_;
};

}  // namespace troupe::store
