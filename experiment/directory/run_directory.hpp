/// The directory of one run: its name, its files, and how they are written so that a crash leaves the old file or the new one.
/// Layout: docs/formats/run-directory.md. Checkpoints and journal segments are written by others, at the paths named here.
/// Thread rule: one thread at a time; several processes may create directories under one parent at once. Who writes into one holds its
/// DirectoryLock; reading needs none and opens nothing to write.
/// Errors: Errc::io or no_space naming the path.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/error.hpp"

namespace troupe::experiment {

/// One file of a run's journal, what its members began with, and under which configuration.
struct JournalSegment {
  int number = 0;  // from 1
  std::string path;
  std::string start;   // a checkpoint file; empty: there is none, as for a new run's first
  std::string config;  // of the session that recorded it; empty: there is none, as in older directories
  std::string plan;    // the same of plan.json
};

class RunDirectory {
 public:
  /// Makes `<parent>/<YYYYmmdd-HHMMSS>-<name>` (local time of `now`) with checkpoints/ in it, and `parent` where it is missing.
  /// A name that is taken gets -2, -3, …: two runs never share a directory.
  [[nodiscard]] static core::Result<RunDirectory> create(const std::string& parent, const std::string& name,
                                                         std::time_t now);
  /// A directory that a run left, to go on in or to look at. Errc::config when there is no config.toml in it.
  [[nodiscard]] static core::Result<RunDirectory> open(const std::string& path);
  /// The run directory that `path` is, or that a checkpoint file `path` lies in. Errors as open().
  [[nodiscard]] static core::Result<RunDirectory> containing(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string config_file() const { return path_ + "/config.toml"; }
  [[nodiscard]] std::string summary_file() const { return path_ + "/summary.json"; }
  [[nodiscard]] std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  [[nodiscard]] std::string checkpoints() const { return path_ + "/checkpoints"; }

  /// Removes what a writer that was killed left half written here (nn::remove_temporaries). REQUIRES the directory's lock.
  [[nodiscard]] core::Result<void> remove_temporaries() const;

  /// Both files are replaced whole or not at all (nn::replace_file).
  [[nodiscard]] core::Result<void> write_config(const core::Config& config) const;
  /// The resolved configuration as saved, with `overrides` on top. Errors as Config::load.
  [[nodiscard]] core::Result<core::Config> read_config(const core::Schema& schema,
                                                       const std::vector<std::string>& overrides) const;
  /// plan.json, as to_json(const RunPlan&) makes it. Nothing when there is none.
  [[nodiscard]] core::Result<void> write_plan(std::string_view json) const;
  [[nodiscard]] core::Result<std::optional<std::string>> read_plan() const;
  [[nodiscard]] core::Result<void> write_summary(std::string_view json) const;  // as to_json(const Summary&) makes it
  [[nodiscard]] std::string read_summary() const;  // of the latest session that ended; empty: there is none to be read

  /// Paths of the segment after the newest: journal-0001.bin in a new run. No file is created.
  [[nodiscard]] core::Result<JournalSegment> next_journal() const;
  /// Paths of segment `number`, whatever of it is there.
  [[nodiscard]] JournalSegment segment(int number) const;
  /// Those there are, oldest first.
  [[nodiscard]] core::Result<std::vector<JournalSegment>> journals() const;
  /// The segment's own copy of the resolved configuration: a resume may overwrite config.toml.
  [[nodiscard]] core::Result<void> write_config(const JournalSegment& segment, const core::Config& config) const;
  /// And of the session's plan, which the next session's takes the place of. A segment without one has the run's.
  [[nodiscard]] core::Result<void> write_plan(const JournalSegment& segment, std::string_view json) const;
  [[nodiscard]] core::Result<std::optional<std::string>> read_plan(const JournalSegment& segment) const;

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Appends whole lines to metrics.jsonl. A failing disk must not end a training run, so a failure is reported once: append()
/// returns the Error of the first line that could not be written, then drops lines silently until one can be written again.
/// Not thread-safe. Nothing is synced: metrics are worth less than the wait.
class MetricsWriter {
 public:
  /// Appends to what a former process wrote; a last line that a crash cut off is removed.
  [[nodiscard]] static core::Result<MetricsWriter> open(const std::string& path);
  MetricsWriter(MetricsWriter&& other) noexcept;
  MetricsWriter& operator=(MetricsWriter&& other) noexcept;
  ~MetricsWriter();

  /// `line` without its end.
  [[nodiscard]] core::Result<void> append(std::string_view line);
  [[nodiscard]] std::uint64_t dropped_lines() const noexcept { return dropped_; }

 private:
  MetricsWriter(std::string path, int fd, std::int64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  std::int64_t size_ = 0;  // bytes of whole lines
  bool failing_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace troupe::experiment
