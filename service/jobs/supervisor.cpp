#include "service/jobs/supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace troupe::service {
namespace {

using SuperviseClock = std::chrono::steady_clock;

struct Pipe {
  core::FileDescriptor read, write;
};

core::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tl::unexpected(core::from_errno(errno, "create", "a pipe"));
  return Pipe{core::FileDescriptor(ends[0]), core::FileDescriptor(ends[1])};
}

/// The number of the next signal; 0: none came within the time.
int next_signal(std::chrono::milliseconds patience) {
  const auto signals = supervisor_signals();
  const timespec time{.tv_sec = patience.count() / 1000, .tv_nsec = patience.count() % 1000 * 1'000'000};
  const int signal = ::sigtimedwait(&signals, nullptr, &time);
  return signal > 0 ? signal : 0;
}

void kill_job() {
  constexpr std::chrono::seconds kPatience{10};  // a process that gives much memory back takes its time
  if (const auto self = identity_of(::getpid())) kill_followers(*self, kPatience);
}

/// The program in the child process: begins when `go` has a byte, and ends when that has none.
[[noreturn]] void become(std::vector<std::string> command, const Pipe& go, const Pipe& failure) {
  char byte = 0;
  if (::read(go.read.get(), &byte, 1) != 1) ::_exit(127);
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR1, &action, nullptr);  // until the program sets its handler a request to save must not end it
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  const int error = errno;
  [[maybe_unused]] const auto ignored = ::write(failure.write.get(), &error, sizeof error);
  ::_exit(127);
}

/// Passes signals on until the program has ended; returns its wait status.
int attend(pid_t program) {
  bool interrupted = false;
  for (;;) {
    const int signal = next_signal(std::chrono::hours(1));
    if (signal == SIGINT && !std::exchange(interrupted, true)) ::kill(program, SIGINT);
    if (signal == SIGTERM || signal == SIGUSR1) ::kill(program, signal);
    if (signal == SIGUSR2) kill_job();
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == program) return status;
  }
}

/// Processes that the program has started and not waited for.
void await_leftovers() {
  const auto until = SuperviseClock::now() + kLeftoverPatience;
  for (;;) {
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0) return;  // none is left
    if (next_signal(std::chrono::seconds(1)) == SIGUSR2 || SuperviseClock::now() > until) break;
  }
  kill_job();
}

core::Result<core::FileDescriptor> take_lock(const JobFolder& folder) {
  for (const auto until = SuperviseClock::now() + kLockPatience;;) {
    auto lock = folder.try_lock();
    if (!lock) return tl::unexpected(std::move(lock.error()));
    if (*lock) return std::move(**lock);
    if (SuperviseClock::now() > until)
      return core::fail(core::Errc::timeout,
                        fmt::format("{}: a process of an earlier attempt still runs: end it", folder.path()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // signals stay pending for the program
  }
}

/// On a full disk again and again, while the lock is held: without a record the service would call the attempt lost.
core::Result<void> write_end(const JobFolder& folder, const ExitRecord& end) {
  for (const auto until = SuperviseClock::now() + kFullDiskPatience;;) {
    auto written = folder.write(end);
    if (written || written.error().code != core::Errc::no_space || SuperviseClock::now() > until) return written;
    if (next_signal(std::chrono::seconds(1)) != SIGUSR2) continue;
    kill_job();
    return written;
  }
}

core::Result<bool> is_settled(const JobFolder& folder, std::int64_t attempt) {
  const auto exit = folder.read_exit();
  const auto process = folder.read_process();
  if (!exit || !process) return tl::unexpected(!exit ? exit.error() : process.error());
  return (*exit && (*exit)->attempt >= attempt) || (*process && (*process)->attempt >= attempt);
}

void pass(CrashPoint crash, std::string_view point) {
  if (crash != nullptr) crash(point);
}

}  // namespace

sigset_t supervisor_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) ::sigaddset(&signals, signal);
  return signals;
}

core::Result<void> supervise(const SuperviseOptions& options) {
  const auto signals = supervisor_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the program become children of this process, which waits for them
  const JobFolder folder(options.folder);
  pass(options.crash, "supervisor: before the lock");
  const auto lock = take_lock(folder);
  if (!lock) return tl::unexpected(lock.error());
  pass(options.crash, "supervisor: locked");
  if (const auto settled = is_settled(folder, options.attempt); !settled || *settled)
    return settled ? core::Result<void>() : tl::unexpected(settled.error());
  ::fcntl((*lock).get(), F_SETFD, 0);  // the program inherits it
  auto go = make_pipe(), failure = make_pipe();
  if (!go || !failure) return tl::unexpected(!go ? go.error() : failure.error());
  const pid_t program = ::fork();
  if (program < 0) return tl::unexpected(core::from_errno(errno, "fork", options.command.front()));
  if (program == 0) {
    go->write.reset();
    become(options.command, *go, *failure);
  }
  pass(options.crash, "supervisor: forked");
  failure->write.reset();
  const auto self = identity_of(::getpid()), other = identity_of(program);
  if (auto written = folder.write(ProcessRecord{options.attempt, self.value_or(ProcessIdentity{::getpid(), 0}),
                                                other.value_or(ProcessIdentity{program, 0})});
      !written)
    return written;  // the program, whose pipe closes, never begins
  pass(options.crash, "supervisor: process written");
  if (::write(go->write.get(), "", 1) != 1) return tl::unexpected(core::from_errno(errno, "start", options.folder));
  go->write.reset();
  int error = 0;  // of execvp; the pipe is closed by a program that begins
  if (::read(failure->read.get(), &error, sizeof error) != sizeof error) error = 0;
  pass(options.crash, "supervisor: begun");
  const int status = attend(program);
  pass(options.crash, "supervisor: ended");
  ExitRecord end{.attempt = options.attempt};
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  if (error != 0) end.error = fmt::format("cannot start {}: {}", options.command.front(), std::strerror(error));
  const auto written = write_end(folder, end);
  if (written) pass(options.crash, "supervisor: exit written");
  await_leftovers();
  return written;
}

}  // namespace troupe::service
