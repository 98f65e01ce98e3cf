/// The folder of one job, `<run.dir>/.service/jobs/<id>/`, by which the service and the supervisor of the job's process agree on what
/// has happened, although either may be killed at any moment.
///
///     lock            an OFD lock, held by the supervisor and by the job's process, which inherits its open file
///     process.json    written by the supervisor, which holds the lock, before the job's program begins
///     exit.json       written by the supervisor when the program has ended, or by the service as a fence (below)
///     config.toml, <name>.toml    the configuration, or the grid
///     directory-<attempt>         the run's directory, written by the run (`--directory-file`)
///     log             standard output and standard error of all attempts
///
/// An attempt runs its program at most once, and never after the service has decided that it did not begin. Its fate is decided by the
/// first one that gets the lock:
///
///     service: the row says "running, attempt n"         killed before: nothing has happened. Killed after: A
///     service: starts the supervisor                     killed after: A or B, by who gets the lock first
///     supervisor: takes the lock                         killed after: A, as the kernel releases the lock
///     supervisor: leaves if exit.json or process.json is of attempt n or later
///     supervisor: forks the program, which waits         killed after: the program ends without having begun; A
///     supervisor: process.json for attempt n             killed after: C, and the program has or has not begun
///     supervisor: lets the program begin                 killed after: the program goes on and holds the lock: B, and C at its end
///     supervisor: exit.json for attempt n                killed after: D
///     service: the row has the process                   killed before: B, C or D
///     service: the row has the end                       killed before: C or D; killed after: nothing is left to do
///
/// What a service finds, with observe(). One that has restarted takes the numbers of process.json for those of the attempt only in case B: after
/// a restart of the host they may be other processes'.
/// A. The lock is free and neither file is of attempt n: no program has begun. The service, which has the lock now, writes the fence: an
///    exit.json for attempt n that says so. A supervisor of attempt n that comes later finds it and leaves. The job is queued again; by the
///    service that has started the attempt itself, and seen its supervisor end, it is `failed`.
/// B. The lock is held: the attempt runs, or is about to. The service adopts it: it watches the processes of process.json, which are not its
///    children, and looks again.
/// C. The lock is free, and there is process.json and no exit.json for attempt n: the program has perhaps done part of its work. The job is
///    `lost`; only its user starts or resumes it again.
/// D. exit.json for attempt n: the end.
///
/// Files are replaced as a whole and synced. Thread rule: one thread at a time. Errors: Errc::io or no_space, naming the path.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "service/jobs/process_identity.hpp"

namespace troupe::service {

/// Called with the name of each point between two steps. A test ends the process there; null: nothing.
using CrashPoint = void (*)(std::string_view point);

struct ProcessRecord {
  std::int64_t attempt = 0;
  ProcessIdentity supervisor = {}, program = {};
};

struct ExitRecord {
  std::int64_t attempt = 0;
  bool never_began = false;
  int code = 0;
  int signal = 0;          // 0: it ended by itself, with `code`
  std::string error = {};  // why the program could not be executed; empty: it was
};

/// What has become of an attempt.
struct AttemptOutcome {
  enum class Kind : std::uint8_t { active, ended, never_began, vanished };
  Kind kind = Kind::active;
  std::optional<ProcessRecord> process;
  ExitRecord exit;  // of `ended`
};

class JobFolder {
 public:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string log() const { return path_ + "/log"; }
  [[nodiscard]] std::string directory_file(std::int64_t attempt) const;

  [[nodiscard]] core::Result<void> create() const;
  [[nodiscard]] core::Result<void> write(const std::string& name, std::string_view text) const;
  [[nodiscard]] core::Result<void> write(const ProcessRecord& record) const;
  [[nodiscard]] core::Result<void> write(const ExitRecord& record) const;
  /// Nothing: there is no such file, or it is broken. Errc::io: it cannot be read now, so nothing may be decided.
  [[nodiscard]] core::Result<std::optional<ProcessRecord>> read_process() const;
  [[nodiscard]] core::Result<std::optional<ExitRecord>> read_exit() const;
  /// Nothing also where the file cannot be read now.
  [[nodiscard]] std::optional<ProcessRecord> process() const { return read_process().value_or(std::nullopt); }
  [[nodiscard]] std::optional<ExitRecord> exit() const { return read_exit().value_or(std::nullopt); }
  /// The run's directory as the run wrote it; empty: not yet.
  [[nodiscard]] std::string run_directory(std::int64_t attempt) const;

  /// The lock; nothing: another process holds it.
  [[nodiscard]] core::Result<std::optional<core::FileDescriptor>> try_lock() const;

  /// What has become of this attempt: A to D above. Writes the fence in case A.
  [[nodiscard]] core::Result<AttemptOutcome> observe(std::int64_t attempt, CrashPoint crash = nullptr) const;

  /// The last line of the log, shortened; empty: there is none.
  [[nodiscard]] std::string last_log_line() const;
  struct LogPart {
    std::string text;
    std::uint64_t next = 0;  // where the next part begins
  };
  /// At most `limit` bytes of the log from the byte `from` on; empty at its end.
  [[nodiscard]] core::Result<LogPart> read_log(std::uint64_t from, std::uint64_t limit) const;

 private:
  std::string path_;
};

}  // namespace troupe::service
