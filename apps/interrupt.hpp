/// Ctrl-C and SIGTERM as a stop token: the first signal asks the run to save and end, the second exits immediately.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <stop_token>
#include <thread>

namespace troupe::apps {

/// For its lifetime SIGINT and SIGTERM are blocked in the thread that created it and in all threads started from there; its own thread
/// waits for them. One at a time; create it before other threads. The first signal runs stop callbacks on its thread; the console informs
/// the user (report::ConsoleOptions::stop). The second signal shows the terminal's cursor and ends the process with exit code 130 at any
/// point; several SIGTERM within kWindDown count as one, because a child of a grid gets one for every thread of a grid that is killed. The
/// first signal also exits after kWindDown if there is nothing to save: a computation does not check the stop token.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static constexpr std::chrono::milliseconds kWindDown{800};

  /// Any thread. Initially false.
  void nothing_to_save(bool so) noexcept { nothing_to_save_ = so; }
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  void wait();
  [[nodiscard]] bool next_signal_within(std::chrono::nanoseconds time, int first) const;  // less than a second

  std::stop_source source_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> nothing_to_save_ = false;
  sigset_t signals_{};
  sigset_t before_{};
  std::thread thread_;
};

}  // namespace troupe::apps
