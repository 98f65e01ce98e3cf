#include "guest/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "guest/process_tree.hpp"

namespace troupe::guest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFailed = 3;  // where a keeper finds its descriptors
constexpr int kLife = 4;
constexpr int kFirstOther = 5;
constexpr std::chrono::seconds kKillPatience{
    10};  // a process of another user's, or in a system call that does not return, may stay
constexpr std::chrono::seconds kLinePatience{12};  // longer than the inner keeper's kKillPatience
constexpr int kBetweenLooks = 20;                  // ms; what ends is noticed at once

struct Child {
  pid_t id;
  bool ended = false;
  int status = SIGKILL;  // as of waitpid()
};

/// Reaps all children that have ended. Returns whether others are left.
bool reap(Child& child) {
  for (;;) {
    siginfo_t how{};
    if (::waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
    if (how.si_pid == 0) return true;
    const bool is_child = how.si_pid == child.id;
    if (is_child) ::kill(-child.id, SIGKILL);  // its group; the number is not used again before waitpid()
    (void)::waitpid(how.si_pid, is_child ? &child.status : nullptr, 0);
    child.ended = child.ended || is_child;
  }
}

/// Waits for the end of a child process.
void await_signal(int signals, int patience_ms) {
  pollfd watched{signals, POLLIN, 0};
  (void)::poll(&watched, 1, patience_ms);
  signalfd_siginfo one{};
  while (::read(signals, &one, sizeof(one)) > 0) {
  }
}

/// Ends as `status` says.
[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(number, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, number);
  ::kill(::getpid(), number);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::_exit(128 + number);
}

/// Waits until the child ends or the pipe `kLife` closes; then kills all descendants and ends as the child did. `line`: a pipe whose closing
/// tells the child, a keeper, to do the same; -1: the child is the program.
[[noreturn]] void watch(Child child, int signals, int line) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
  ::close(null);
  ::close(kFailed);
  for (bool alive = true; alive && !child.ended;) {
    std::array<pollfd, 2> watched{pollfd{signals, POLLIN, 0}, pollfd{kLife, POLLIN, 0}};
    (void)::poll(watched.data(), watched.size(), -1);
    alive = watched[1].revents == 0;
    await_signal(signals, 0);
    (void)reap(child);
  }
  // This process may be killed at any time from here on, as the engine's thread ends. Therefore it does not kill the keeper below it.
  if (line >= 0) {
    ::close(line);
    if (!child.ended) ::kill(child.id, SIGCONT);  // it may have been stopped
    for (const auto until = Clock::now() + kLinePatience; !child.ended && Clock::now() < until; (void)reap(child))
      await_signal(signals, kBetweenLooks);
  }
  if (!child.ended) ::kill(-child.id, SIGKILL);
  for (const auto until = Clock::now() + kKillPatience; reap(child) && Clock::now() < until;) {
    for (const pid_t orphan : children_of(::getpid())) ::kill(orphan, SIGKILL);
    await_signal(signals, kBetweenLooks);  // the children of those come here
  }
  end_as(child.status);
}

[[noreturn]] void fail(int error) {
  [[maybe_unused]] const auto written = ::write(kFailed, &error, sizeof(error));
  ::_exit(127);
}

[[noreturn]] void start_program(char** command) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  for (const int own : {kFailed, kLife})
    ::fcntl(own, F_SETFD, FD_CLOEXEC);  // kernels before 5.11 do not know the next call
  ::syscall(SYS_close_range, kFailed, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  ::execvp(command[0], command);
  fail(errno);
}

/// Runs `run` in a child process with a process group of its own. Until `run` changes that, the child is killed when this process ends.
template <class Run>
Child start_child(const Run& run) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail(-errno);
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    run();
  }
  ::setpgid(child, child);  // in both processes: either may run first
  return {.id = child};
}

/// Makes this process adopt orphans. Returns a signalfd that is readable when a child has ended. To be called before the first child starts.
int prepare() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGCHLD);
  const int signals = ::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail(-errno);
  return signals;
}

[[noreturn]] void keep(char** command) {
  ::prctl(PR_SET_NAME, kKeeperName);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGCHLD, SIG_DFL);
  std::array<int, 2> outer_lives{};
  if (::pipe2(outer_lives.data(), O_CLOEXEC) != 0) fail(-errno);
  const int outer_signals = prepare();
  const auto inner = start_child([&] {
    ::dup2(outer_lives[0], kLife);
    ::close(outer_lives[0]);
    ::close(outer_lives[1]);
    ::close(outer_signals);
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);  // kLife tells of it, also if this process was stopped
    const int signals = prepare();
    const auto program = start_child([&] { start_program(command); });
    watch(program, signals, -1);
  });
  ::close(outer_lives[0]);
  watch(inner, outer_signals, outer_lives[1]);
}

[[gnu::constructor(101)]] void keep_if_asked(int argc, char** argv, char**) {
  if (argc > kKeeperWords && std::strcmp(argv[0], kKeeperName) == 0 && std::strcmp(argv[1], kKeeperMark) == 0)
    keep(argv + kKeeperWords);
}

}  // namespace

void become_keeper(const KeeperDescriptors& given, char* const* argv, char* const* environment) noexcept {
  // Copies above the numbers that dup2() below overwrites.
  const int output = ::fcntl(given.output, F_DUPFD_CLOEXEC, kFirstOther);
  const int failed = ::fcntl(given.failed, F_DUPFD_CLOEXEC, kFirstOther);
  const int life = ::fcntl(given.life, F_DUPFD_CLOEXEC, kFirstOther);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null == STDIN_FILENO) ::fcntl(null, F_SETFD, 0);  // it was closed; dup2() to itself would leave the flag
  const bool all_there = ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
                         ::dup2(output, STDERR_FILENO) >= 0 && ::dup2(life, kLife) >= 0;
  const int error = errno;
  if (::dup2(failed, kFailed) < 0) ::_exit(127);
  if (!all_there) fail(-error);
  ::syscall(SYS_close_range, kFirstOther, ~0U, 0U);  // whatever a library has left open
  ::execve("/proc/self/exe", argv, environment);
  fail(-errno);
}

}  // namespace troupe::guest
