/// A thread in the background that works off tasks one after the other, and a periodic one between them. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace troupe::service {

/// Of threads in the background; a training has 0 unless it is started otherwise.
inline constexpr int kBackgroundNice = 10;

/// From now on the calling thread has SCHED_BATCH, so that it preempts nobody when it wakes, and at least kBackgroundNice, so that on a busy
/// processor it gets about a tenth of what a training's thread gets. Threads and processes that it starts inherit that: jobs are started by a
/// thread that never calls it. What already has another policy or a higher nice value keeps it.
void work_in_background() noexcept;

/// Its thread works in the background.
class Worker {
 public:
  using Task = std::function<void()>;
  /// Runs between tasks; returns when it wants to run again; nothing: after the next task.
  using Tick = std::function<std::optional<std::chrono::milliseconds>()>;

  static constexpr std::size_t kMostWaiting = 256;

  /// Tasks must not throw.
  explicit Worker(Tick tick = nullptr, std::size_t most_waiting = kMostWaiting);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// False: too many tasks wait, or the worker was stopped.
  [[nodiscard]] bool post(Task task);
  /// Drops the tasks that wait and waits for the one that runs. token() tells it to hurry.
  void stop();
  [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }

 private:
  void run();

  Tick tick_;
  std::size_t most_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::thread thread_;
};

}  // namespace troupe::service
