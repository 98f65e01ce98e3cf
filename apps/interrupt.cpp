#include "apps/interrupt.hpp"

#include <pthread.h>
#include <unistd.h>

#include <string_view>

#include "core/error.hpp"

namespace troupe::apps {
namespace {

[[noreturn]] void leave_at_once() {
  constexpr std::string_view kShowCursor = "\x1b[?25h\n";
  if (::isatty(STDERR_FILENO) == 1) [[maybe_unused]]
    const auto ignored = ::write(STDERR_FILENO, kShowCursor.data(), kShowCursor.size());
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
  ::pthread_kill(thread_.native_handle(), SIGINT);  // to that thread alone: it wakes up and sees that it is over
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::wait() {
  int signal = 0;
  while (::sigwait(&signals_, &signal) == 0 && !over_)
    if (!source_.request_stop()) leave_at_once();
}

}  // namespace troupe::apps
