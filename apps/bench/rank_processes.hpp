/// Forks the ranks of a benchmark and talks to them: every rank says a line, every rank hears all lines. Thread rule: one
/// thread, and the process has no other when it forks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace troupe::transport {

/// A rank's end of the line to the process that forked it.
class RankLine {
 public:
  explicit RankLine(int fd) noexcept : fd_(fd) {}
  /// Neither may contain a newline. Errc::peer_lost when the other end is gone, Errc::timeout after `patience` without
  /// a word.
  [[nodiscard]] core::Result<void> say(std::string_view line) const;
  [[nodiscard]] core::Result<std::string> hear(core::Duration patience) const;

 private:
  int fd_;
};

/// Child processes, killed and waited for at the end of this object, and by the kernel should this process end before.
class RankProcesses {
 public:
  using Work = std::function<core::Result<void>(std::size_t rank, RankLine& line)>;

  RankProcesses() = default;
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses();

  /// Each runs `work` and ends; an error of its own is the last line it says, after an exclamation mark.
  [[nodiscard]] core::Result<void> start(std::size_t ranks, const Work& work);
  /// One line of each, in rank order. An error that a rank says is the result.
  [[nodiscard]] core::Result<std::vector<std::string>> gather(core::Duration patience) const;
  /// Every rank hears all `lines`.
  [[nodiscard]] core::Result<void> spread(const std::vector<std::string>& lines) const;

 private:
  struct Rank {
    pid_t process;
    int fd;
  };
  std::vector<Rank> ranks_;
};

}  // namespace troupe::transport
