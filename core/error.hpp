/// Expected failures are values of one line: what went wrong, where, and what to do. Bugs (broken preconditions) are exceptions or
/// assertions, never an Error. Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace troupe::core {

/// The kinds of failure. Each has one exit code (README). Their numbers travel between processes: add a new kind at the end.
enum class Errc {
  usage,          ///< wrong subcommand, flag or call: exit 2
  config,         ///< bad configuration value or key: exit 78
  data,           ///< dataset missing, truncated or malformed: exit 65
  corrupt,        ///< a file that Troupe wrote fails its checksum or format: exit 65
  io,             ///< a system call on a file failed: exit 74
  no_space,       ///< the disk is full: exit 74
  timeout,        ///< a wait reached its deadline: exit 75
  peer_lost,      ///< a member of the run is lost: exit 75
  diverged,       ///< loss or parameters stopped being finite: exit 70
  interrupted,    ///< stopped on request, after a checkpoint: exit 130
  internal,       ///< an invariant of Troupe does not hold: exit 70
  out_of_memory,  ///< memory of this process, its control group, shared memory or a device: exit 71
  program,        ///< the user's own program failed by itself, as it will again: exit 69
};
inline constexpr Errc kLastErrc = Errc::program;

/// One line: what, where (file and line, record, worker and step, peer), and what to do.
struct Error {
  Errc code = Errc::internal;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// The documented exit code of the process for this kind of failure.
[[nodiscard]] int exit_code(Errc code) noexcept;

/// Short stable name ("config", "no_space", …), used in logs and JSON.
[[nodiscard]] std::string_view name(Errc code) noexcept;

/// The Error for a failed system call on `path`: ENOSPC and EDQUOT become no_space, ENOMEM out_of_memory, all others io. `doing` is
/// the verb after "cannot": "open", "write".
[[nodiscard]] Error from_errno(int error_number, std::string_view doing, std::string_view path);

/// Errc::interrupted before a run exists: there is nothing to stop and nothing to save.
[[nodiscard]] inline Error interrupted_early() { return {Errc::interrupted, "interrupted before it began"}; }

}  // namespace troupe::core
