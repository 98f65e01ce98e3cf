/// Signals of the user as a stop token: the first asks the run to save and end, the second exits immediately. SIGUSR1 asks for a
/// checkpoint.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace troupe::apps {

/// SIGINT, SIGTERM and SIGHUP (a closed terminal; not where it is ignored, as under nohup) ask to stop. For its lifetime they and SIGUSR1
/// are blocked in the thread that created it and in all threads started from there; its own thread waits for them. SIGPIPE is ignored: what
/// read the output may have ended with the terminal. SIGUSR1 stays ignored afterwards: it must not end a process whose run has ended. One
/// at a time; create it before other threads.
///
/// The first signal runs stop callbacks on its thread; the console informs the user (report::ConsoleOptions::stop). The second signal
/// shows the terminal's cursor, says what it does, and ends the process with exit code 130 at any point. Several SIGTERM within
/// kWindDown count as one, because a child of a grid gets one for every thread of a grid that is killed; SIGHUP is never a second signal,
/// because a shell and the kernel both send one. The first signal also exits after kWindDown if there is nothing to save: a computation
/// does not check the stop token.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static constexpr std::chrono::milliseconds kWindDown{800};

  /// Any thread. Initially false.
  void nothing_to_save(bool so) noexcept { nothing_to_save_ = so; }
  /// Any thread. What the second signal says, after the program's name.
  void second_signal_message(std::string text);
  /// Any thread. SIGUSR1 calls `action` on the own thread of this; null: it has no effect. When this returns the action before does not run
  /// any more.
  void on_save_request(std::function<void()> action);
  /// Any thread. Called on the own thread of this before it ends the process; null: nothing. When this returns the action before does not run
  /// any more.
  void before_exit(std::function<void()> action);
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  void wait();
  /// Whether a second request to stop comes within the time (less than a second).
  [[nodiscard]] bool stopped_again_within(std::chrono::nanoseconds time);
  void save();
  [[noreturn]] void exit_at_once();

  std::stop_source source_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> nothing_to_save_ = false;
  std::mutex mutex_;  // of the three below
  std::string second_signal_message_ = "interrupted again: exits at once, nothing more was saved";
  std::function<void()> save_;
  std::function<void()> before_exit_;
  int first_ = 0;  // the first signal that asked to stop
  sigset_t signals_{};
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  std::thread thread_;
};

}  // namespace troupe::apps
