/// Threads that work off tasks, while who has made the pool goes on adding some. Thread rule: one thread makes it, adds and waits.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::store {

class ThreadPool {
 public:
  /// `most` threads, at least 1.
  explicit ThreadPool(std::size_t most) : most_(most) {}
  /// Tasks that have not begun never do. Waits for the others.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Starts a thread for it, too, as long as there are fewer than the most and the system has one to give. A task must not throw.
  void add(std::function<void()> task);
  /// Works off tasks itself, and returns when all are done. More may be added then. It has no deadline: a task ends when the system's call does.
  void wait();

 private:
  void work();
  /// Whether there was one.
  bool do_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t under_way_ = 0;
  bool over_ = false;
  std::size_t most_;
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::store
