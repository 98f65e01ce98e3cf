#include "apps/bench/rank_processes.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr char kError = '!';

}  // namespace

core::Result<void> RankLine::say(std::string_view line) const {
  std::string text(line);
  text += '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return core::fail(core::Errc::peer_lost, "a process of the benchmark has ended");
    done += static_cast<std::size_t>(count);
  }
  return {};
}

// Reads one byte at a time: lines are short and few, and bytes after the newline belong to the next call.
core::Result<std::string> RankLine::receive(core::Duration patience) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  for (std::string line;;) {
    pollfd watched{fd_, POLLIN, 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(ms));
    if (ready == 0) return core::fail(core::Errc::timeout, "a process of the benchmark makes no progress");
    char c = 0;
    const ssize_t count = ready < 0 ? -1 : ::recv(fd_, &c, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return core::fail(core::Errc::peer_lost, "a process of the benchmark has ended");
    if (c == '\n') return line;
    line += c;
  }
}

RankProcesses::~RankProcesses() {
  for (const Rank& rank : ranks_) {
    ::kill(rank.process, SIGKILL);
    ::close(rank.fd);
  }
  for (const Rank& rank : ranks_) {
    while (::waitpid(rank.process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

core::Result<void> RankProcesses::start(std::size_t ranks, const Work& work) {
  const pid_t parent = ::getpid();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) < 0)
      return tl::unexpected(core::from_errno(errno, "open", "a socket to a process of the benchmark"));
    const pid_t process = ::fork();
    if (process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::close(pair[0]);
      for (const Rank& other : ranks_) ::close(other.fd);
      RankLine line(pair[1]);
      const auto result = work(rank, line);
      if (!result) (void)line.say(kError + result.error().message);
      ::_exit(result ? 0 : 1);
    }
    ::close(pair[1]);
    if (process < 0) {
      const int error = errno;
      ::close(pair[0]);
      return tl::unexpected(core::from_errno(error, "fork", "a process of the benchmark"));
    }
    ranks_.push_back({process, pair[0]});
  }
  return {};
}

core::Result<std::vector<std::string>> RankProcesses::gather(core::Duration patience) const {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    auto line = RankLine(ranks_[rank].fd).receive(patience);
    if (!line) return core::fail(line.error().code, fmt::format("rank {}: {}", rank, line.error().message));
    if (line->starts_with(kError))
      return core::fail(core::Errc::internal, fmt::format("rank {}: {}", rank, line->substr(1)));
    lines.push_back(std::move(*line));
  }
  return lines;
}

core::Result<void> RankProcesses::spread(const std::vector<std::string>& lines) const {
  for (const Rank& rank : ranks_)
    for (const std::string& line : lines)
      if (auto said = RankLine(rank.fd).say(line); !said) return said;
  return {};
}

}  // namespace troupe::transport
