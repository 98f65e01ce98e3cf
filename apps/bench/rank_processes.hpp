/// Forks the ranks of a benchmark and exchanges lines of text with them: each rank sends a line, every rank receives all lines. Thread
/// rule: one thread; the process has no other thread when it forks.
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

/// A rank's channel to the parent process.
class RankLine {
 public:
  explicit RankLine(int fd) noexcept : fd_(fd) {}
  /// Lines contain no newline. Errc::peer_lost when the other end is closed, Errc::timeout after `patience` without input.
  [[nodiscard]] core::Result<void> say(std::string_view line) const;
  [[nodiscard]] core::Result<std::string> receive(core::Duration patience) const;

 private:
  int fd_;
};

/// Child processes. The destructor kills them and waits for them; the kernel kills them if this process ends first.
class RankProcesses {
 public:
  using Work = std::function<core::Result<void>(std::size_t rank, RankLine& line)>;

  RankProcesses() = default;
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses();

  /// Each rank runs `work` and ends; it sends an error as its last line, after an exclamation mark.
  [[nodiscard]] core::Result<void> start(std::size_t ranks, const Work& work);
  /// One line of each rank, in rank order. Returns the error that a rank sends.
  [[nodiscard]] core::Result<std::vector<std::string>> gather(core::Duration patience) const;
  /// Sends all `lines` to every rank.
  [[nodiscard]] core::Result<void> spread(const std::vector<std::string>& lines) const;

 private:
  struct Rank {
    pid_t process;
    int fd;
  };
  std::vector<Rank> ranks_;
};

}  // namespace troupe::transport
