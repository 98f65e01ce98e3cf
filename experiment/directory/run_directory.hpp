/// The directory of one run: its name and its files, written so that a crash leaves the old file or the new one. Layout:
/// docs/formats/run-directory.md. Other code writes checkpoints and journal segments, at the paths named here.
/// Thread rule: one thread at a time; several processes may create directories under one parent at once. A writer holds the DirectoryLock
/// of the directory; readers need none and open nothing for writing.
/// Errors: Errc::io or no_space naming the path.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.hpp"
#include "core/error.hpp"

namespace troupe::experiment {

/// One journal file of a run, with its start state and its configuration.
struct JournalSegment {
  int number = 0;  // from 1
  std::string path;
  std::string start;   // a checkpoint file; empty: none, as for a new run's first segment
  std::string config;  // of the recording session; empty: none, as in older directories
  std::string plan;    // that session's plan.json; empty: none
};

class RunDirectory {
 public:
  /// Creates `<parent>/<YYYYmmdd-HHMMSS>-<name>` (local time of `now`) with checkpoints/ in it, and `parent` if it is missing. An existing
  /// name gets -2, -3, …: two runs never share a directory.
  [[nodiscard]] static core::Result<RunDirectory> create(const std::string& parent, const std::string& name,
                                                         std::time_t now);
  /// Opens the directory of an earlier run, to resume or to read. Errc::config when it does not exist, or contains no config.toml;
  /// io: this user may not look into it.
  [[nodiscard]] static core::Result<RunDirectory> open(const std::string& path);
  /// The run directory `path`, or the one that contains the checkpoint file `path`. Errors as open().
  [[nodiscard]] static core::Result<RunDirectory> containing(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string config_file() const { return path_ + "/config.toml"; }
  [[nodiscard]] std::string summary_file() const { return path_ + "/summary.json"; }
  [[nodiscard]] std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  [[nodiscard]] std::string checkpoints() const { return path_ + "/checkpoints"; }
  [[nodiscard]] std::string best_file() const {
    return path_ + "/best.safetensors";
  }  // of a run with a validation split

  /// Removes the incomplete temporary files of a killed writer (nn::remove_temporaries). REQUIRES the directory's lock.
  [[nodiscard]] core::Result<void> remove_temporaries() const;

  /// Both files are replaced as a whole or not at all (nn::replace_file).
  [[nodiscard]] core::Result<void> write_config(const core::Config& config) const;
  /// The saved resolved configuration with `overrides` applied. Errors as Config::load.
  [[nodiscard]] core::Result<core::Config> read_config(const core::Schema& schema,
                                                       const std::vector<std::string>& overrides) const;
  /// plan.json, as made by to_json(const RunPlan&). Reading returns nothing when the file does not exist.
  [[nodiscard]] core::Result<void> write_plan(std::string_view json) const;
  [[nodiscard]] core::Result<std::optional<std::string>> read_plan() const;
  [[nodiscard]] core::Result<void> write_summary(std::string_view json) const;  // as made by to_json(const Summary&)
  [[nodiscard]] std::string read_summary() const;  // of the latest ended session; empty: no readable summary

  /// Paths of the segment after the newest one: journal-0001.bin in a new run. Creates no file.
  [[nodiscard]] core::Result<JournalSegment> next_journal() const;
  /// Paths of the existing files of segment `number`.
  [[nodiscard]] JournalSegment segment(int number) const;
  /// The existing segments, oldest first.
  [[nodiscard]] core::Result<std::vector<JournalSegment>> journals() const;
  /// Writes the segment's own copy of the resolved configuration: a resume may overwrite config.toml.
  [[nodiscard]] core::Result<void> write_config(const JournalSegment& segment, const core::Config& config) const;
  /// The segment's own copy of the session's plan: the next session overwrites plan.json. A segment without a copy uses the run's.
  [[nodiscard]] core::Result<void> write_plan(const JournalSegment& segment, std::string_view json) const;
  [[nodiscard]] core::Result<std::optional<std::string>> read_plan(const JournalSegment& segment) const;

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Appends whole lines to metrics.jsonl. A disk failure must not end a training run. It is reported once: append() returns the Error of the
/// first failed line, then drops lines silently until a write succeeds. Not thread-safe. Not synced: metrics do not justify the wait.
class MetricsWriter {
 public:
  /// Appends to an earlier process's file; removes a last line that a crash cut off.
  [[nodiscard]] static core::Result<MetricsWriter> open(const std::string& path);
  MetricsWriter(MetricsWriter&& other) noexcept;
  MetricsWriter& operator=(MetricsWriter&& other) noexcept;
  ~MetricsWriter();

  /// `line` without its newline.
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
