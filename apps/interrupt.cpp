#include "apps/interrupt.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace troupe::apps {
namespace {

void write(std::string_view text) {
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

Interrupt::Interrupt() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&signals_, signal);
  if (!is_ignored(SIGHUP)) ::sigaddset(&signals_, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
  thread_ = std::thread([this] { wait(); });
}

Interrupt::~Interrupt() {
  over_ = true;
  ::pthread_kill(thread_.native_handle(), SIGINT);  // only to that thread: it wakes up and sees over_
  thread_.join();
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  // A request that comes when all is saved, or that still waits: its default would kill the process, which has succeeded.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR1, &ignore, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::second_signal_message(std::string text) {
  const std::scoped_lock lock(mutex_);
  second_signal_message_ = std::move(text);
}

void Interrupt::on_save_request(std::function<void()> action) {
  const std::scoped_lock lock(mutex_);
  save_ = std::move(action);
}

void Interrupt::before_exit(std::function<void()> action) {
  const std::scoped_lock lock(mutex_);
  before_exit_ = std::move(action);
}

void Interrupt::save() {
  const std::scoped_lock lock(mutex_);
  if (save_) save_();
}

void Interrupt::exit_at_once() {
  constexpr std::string_view kShowCursor = "\x1b[?25h\n";
  if (::isatty(STDERR_FILENO) == 1) write(kShowCursor);
  {
    const std::scoped_lock lock(mutex_);
    write("troupe: " + second_signal_message_ + "\n");
    if (before_exit_) before_exit_();
  }
  ::_exit(core::exit_code(core::Errc::interrupted));
}

bool Interrupt::stopped_again_within(std::chrono::nanoseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left = std::max(until - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
    const timespec patience{.tv_sec = 0, .tv_nsec = left.count()};
    const int next = ::sigtimedwait(&signals_, nullptr, &patience);
    if (next == SIGUSR1) save();
    // The kernel sends SIGTERM for every thread of a parent that ends.
    const bool again = next == SIGINT || (next == SIGTERM && first_ == SIGINT);
    if (again) return true;
    if (next < 0 && errno != EINTR) return false;  // a stopped and continued process gets EINTR
  }
}

void Interrupt::wait() {
  for (first_ = SIGUSR1; first_ == SIGUSR1 && !over_;) {
    if (::sigwait(&signals_, &first_) != 0) return;
    if (first_ == SIGUSR1) save();
  }
  if (over_) return;
  source_.request_stop();
  const bool late = !stopped_again_within(kWindDown);
  if (late && nothing_to_save_) {
    second_signal_message(core::interrupted_early().message);
    exit_at_once();
  }
  for (int next = SIGHUP; late && !over_ && (next == SIGHUP || next == SIGUSR1);) {
    if (::sigwait(&signals_, &next) != 0) return;
    if (next == SIGUSR1) save();
  }
  if (!over_) exit_at_once();
}

}  // namespace troupe::apps
