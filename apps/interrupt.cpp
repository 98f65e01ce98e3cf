#include "apps/interrupt.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string_view>

#include "core/error.hpp"

namespace troupe::apps {
namespace {

void write(std::string_view text) {
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void leave_at_once() {
  constexpr std::string_view kShowCursor = "\x1b[?25h\n";
  if (::isatty(STDERR_FILENO) == 1) write(kShowCursor);
  ::_exit(core::exit_code(core::Errc::interrupted));
}

}  // namespace

Interrupt::Interrupt() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this] { wait(); });
}

Interrupt::~Interrupt() {
  over_ = true;
  ::pthread_kill(thread_.native_handle(), SIGINT);  // only to that thread: it wakes up and sees over_
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupt::next_signal_within(std::chrono::nanoseconds time, int first) const {
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left = std::max(until - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
    const timespec patience{.tv_sec = 0, .tv_nsec = left.count()};
    const int next = ::sigtimedwait(&signals_, nullptr, &patience);
    if (next == SIGTERM && first == SIGTERM) continue;  // the kernel sends one for every thread of a parent that ends
    if (next > 0) return true;
    if (errno != EINTR) return false;  // a stopped and continued process gets EINTR
  }
}

void Interrupt::wait() {
  int signal = 0;
  if (::sigwait(&signals_, &signal) != 0 || over_) return;
  source_.request_stop();
  const bool late = !next_signal_within(kWindDown, signal);
  if (late && nothing_to_save_) {
    write("troupe: interrupted before it began\n");
    leave_at_once();
  }
  if (late && ::sigwait(&signals_, &signal) != 0) return;
  if (!over_) leave_at_once();
}

}  // namespace troupe::apps
