/// sweep.jsonl in a sweep's directory: its decisions and results in their order, from which an interrupted sweep goes on. Append-only. One
/// thread; the holder of the directory's lock.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/sweep/sweep_identity.hpp"
#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "experiment/sweep/search.hpp"

namespace troupe::apps {

inline constexpr const char* kSweepLog = "sweep.jsonl";

struct SweepEvent {
  enum class Kind : std::uint8_t { begin, score, failed, pause };
  Kind kind = Kind::begin;
  double t = 0;  // seconds of the sweep, earlier sessions included
  sweep::Step step{};
  std::vector<std::pair<std::string, std::string>> settings{};  // of a trial that begins: key and value as TOML
  sweep::Search::Result result{};                               // score
  std::string error{};                                          // failed
  // pause: the session ended at t, with steps under way. It has no step.
};

class SweepLog {
 public:
  /// Opens or begins the log. A last line that a killed sweep left incomplete is removed; a first line of an earlier release is replaced.
  /// Errc::config: it is of a sweep with another identity, or of a later release. Errc::corrupt: a line is none of a log. Errc::io, no_space.
  [[nodiscard]] static core::Result<SweepLog> open(const std::string& directory, const SweepIdentity& identity);

  [[nodiscard]] const std::vector<SweepEvent>& before() const noexcept { return before_; }  ///< of earlier sessions
  /// The line is on disk when it returns.
  [[nodiscard]] core::Result<void> append(const SweepEvent& event);
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  SweepLog(std::string path, core::FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] core::Result<void> write(const std::string& line);

  std::string path_;
  core::FileDescriptor file_;
  std::vector<SweepEvent> before_;
};

/// The events of the log in a sweep's directory; none where it has no log. Reads only. Errors as SweepLog::open().
[[nodiscard]] core::Result<std::vector<SweepEvent>> read_sweep_log(const std::string& directory,
                                                                   const SweepIdentity& identity);

/// The events of a log's text. Errors as SweepLog::open().
[[nodiscard]] core::Result<std::vector<SweepEvent>> parse_sweep_log(std::string_view text, const std::string& path,
                                                                    const SweepIdentity& identity);

}  // namespace troupe::apps
