/// Ctrl-C and SIGTERM as a stop token: the first asks the run to save and end, the second leaves at once.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <stop_token>
#include <thread>

namespace troupe::apps {

/// While it lives SIGINT and SIGTERM are blocked in the thread that made it, and in all threads that one starts, and a thread
/// of its own waits for them. One at a time, made before other threads are.
/// The first signal calls stop callbacks, on that thread; the console tells the user (report::ConsoleOptions::stop). The
/// second shows the terminal's cursor and ends the process with exit code 130, whatever it is doing. So does the first one
/// after kWindDown where there is nothing to save: what computes hears no stop token.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static constexpr std::chrono::milliseconds kWindDown{800};

  /// Any thread. False from the beginning.
  void nothing_to_save(bool so) noexcept { nothing_to_save_ = so; }
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  void wait();
  [[nodiscard]] bool next_signal_within(std::chrono::nanoseconds time) const;  // less than a second

  std::stop_source source_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> nothing_to_save_ = false;
  sigset_t signals_{};
  sigset_t before_{};
  std::thread thread_;
};

}  // namespace troupe::apps
