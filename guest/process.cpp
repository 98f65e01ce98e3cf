#include "guest/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/open_files.hpp"
#include "guest/keeper.hpp"
#include "guest/lines.hpp"

extern char** environ;

namespace troupe::guest {
namespace {

constexpr std::size_t kLastLines = 12;
constexpr std::size_t kLongestLine = 2000;                   // bytes; a longer one is cut into several
constexpr std::chrono::seconds kKillPatience{15};            // longer than each of its keepers waits
constexpr std::chrono::seconds kStartPatience{60};           // until the program is executed
constexpr std::size_t kMostAfterEnd = std::size_t{1} << 20;  // bytes: of a child that goes on printing

core::Error system_error(const char* what) {
  return {core::Errc::io, fmt::format("a program of the run: {}: {}", what, std::strerror(errno))};
}

std::vector<std::string> environment_with(const GuestProcess::Variables& variables) {
  std::vector<std::string> all;
  const auto replaced = [&](std::string_view entry) {
    return std::ranges::any_of(variables, [&](const auto& variable) {
      return entry.size() > variable.first.size() && entry.starts_with(variable.first) &&
             entry[variable.first.size()] == '=';
    });
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!replaced(*entry)) all.emplace_back(*entry);
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

core::Result<std::unique_ptr<GuestProcess>> GuestProcess::start(const std::vector<std::string>& command,
                                                                const Variables& variables, OnLine on_line) {
  std::array<int, 2> out{}, failed{}, life{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) return tl::unexpected(system_error("a pipe"));
  core::FileDescriptor out_read(out[0]), out_write(out[1]);
  if (::pipe2(failed.data(), O_CLOEXEC) != 0) return tl::unexpected(system_error("a pipe"));
  core::FileDescriptor failed_read(failed[0]), failed_write(failed[1]);
  if (::pipe2(life.data(), O_CLOEXEC) != 0) return tl::unexpected(system_error("a pipe"));
  core::FileDescriptor life_read(life[0]), life_write(life[1]);
  std::vector<std::string> words{kKeeperName, kKeeperMark};
  words.insert(words.end(), command.begin(), command.end());
  auto environment = environment_with(variables);
  const auto argv = pointers(words), envp = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return tl::unexpected(system_error("fork"));
  if (child == 0) {  // only calls that are safe between fork and exec
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    core::restore_open_files_limit();
    become_keeper({.output = out[1], .failed = failed[1], .life = life[0]}, argv.data(), envp.data());
  }
  ::setpgid(child, child);  // in both processes: either may run first
  failed_write.reset();
  out_write.reset();
  std::unique_ptr<GuestProcess> process(new GuestProcess);
  process->id_ = child;
  process->life_ = std::move(life_write);
  pollfd told{failed_read.get(), POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + kStartPatience;
  int ready = 0;
  do ready = ::poll(&told, 1, static_cast<int>(std::chrono::milliseconds(kStartPatience).count()));
  while (ready < 0 && errno == EINTR && std::chrono::steady_clock::now() < until);
  if (ready <= 0)
    return core::fail(
        core::Errc::timeout,
        fmt::format("model.command: {} has not been started after {} s: is its file on a disk that answers?",
                    command.front(), kStartPatience.count()));
  int error = 0;
  ssize_t count = 0;
  do count = ::read(failed_read.get(), &error, sizeof(error));
  while (count < 0 && errno == EINTR);
  if (count == sizeof(error) && error < 0) {
    errno = -error;
    return tl::unexpected(system_error("its keeper"));
  }
  if (count == sizeof(error)) {
    const bool is_script = command.front().ends_with(".py");
    return core::fail(
        core::Errc::config,
        fmt::format("model.command: {} cannot be started: {}{}", command.front(), std::strerror(error),
                    is_script ? "; write its interpreter before it, as in python3 " + command.front() : std::string()));
  }
  process->watch_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  process->output_ = std::move(out_read);
  process->stop_.reset(::eventfd(0, EFD_CLOEXEC));
  process->on_line_ = std::move(on_line);
  process->reader_ = std::thread([self = process.get()] { self->read_output(); });
  return process;
}

GuestProcess::~GuestProcess() {
  if (id_ > 0) {
    life_.reset();
    siginfo_t how{};
    const bool ours = ::waitid(P_PID, static_cast<id_t>(id_), &how, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (ours && !has_ended(kKillPatience)) ::kill(id_, SIGKILL);  // the outer keeper; the inner one goes on
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  finish_reading();
}

std::optional<std::string> GuestProcess::ending(std::chrono::milliseconds patience) {
  const auto how = has_ended(patience);
  if (!how) return std::nullopt;
  finish_reading();
  if (how->si_code == CLD_EXITED) return fmt::format("ended with exit code {}", how->si_status);
  return fmt::format("was killed by signal {} ({})", how->si_status, ::strsignal(how->si_status));
}

bool GuestProcess::ended_by_itself() const {
  constexpr int kKilled = 128;  // and the signal's number
  const auto how = has_ended(std::chrono::milliseconds(0));
  return how && how->si_code == CLD_EXITED && (how->si_status <= kKilled || how->si_status >= kKilled + NSIG);
}

std::optional<siginfo_t> GuestProcess::has_ended(std::chrono::milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    siginfo_t how{};
    if (::waitid(P_PID, static_cast<id_t>(id_), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == id_)
      return how;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd watched{watch_.get(), POLLIN, 0};
    (void)::poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left, watch_ ? 60'000 : 5)));
  }
}

/// The reader takes what is in the pipe, and ends.
void GuestProcess::finish_reading() {
  if (!reader_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof(one));
  reader_.join();
}

std::vector<std::string> GuestProcess::last_lines() const {
  const std::scoped_lock lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

/// Reads until the program and its children have closed the pipe, or stop_ is set: then what is there already.
void GuestProcess::read_output() {
  std::string text;
  const auto tell = [&] {
    if (text.empty()) return;
    const auto line = printable(text);
    text.clear();
    {
      const std::scoped_lock lock(mutex_);
      lines_.push_back(line);
      if (lines_.size() > kLastLines) lines_.pop_front();
    }
    if (on_line_) on_line_(line);
  };
  std::array<char, 4096> bytes{};
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  std::size_t late = 0;
  for (bool stopping = false; late < kMostAfterEnd;) {
    const ssize_t count = ::read(output_.get(), bytes.data(), bytes.size());
    if (count == 0) break;
    if (count < 0 && errno == EAGAIN) {
      if (stopping) break;
      std::array<pollfd, 2> watched{pollfd{output_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) break;
      stopping = watched[1].revents != 0;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    late += stopping ? static_cast<std::size_t>(count) : 0;
    for (const char c : std::string_view(bytes.data(), static_cast<std::size_t>(count))) {
      if (c == '\n' || c == '\r') {
        tell();
        continue;
      }
      const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // a character of UTF-8 stays whole
      if (text.size() >= kLongestLine && begins) tell();
      text += c;
      if (text.size() >= kLongestLine + 4) tell();
    }
  }
  tell();
}

}  // namespace troupe::guest
