#include "store/look/thread_pool.hpp"

#include <system_error>
#include <utility>

namespace troupe::store {

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  threads_.clear();  // waits for them
}

void ThreadPool::add(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  if (threads_.size() >= most_) return;
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // No more threads are to be had: those that are there do all, at last wait().
  }
}

void ThreadPool::wait() {
  std::unique_lock lock(mutex_);
  while (do_next(lock)) {
  }
  changed_.wait(lock, [this] { return under_way_ == 0; });
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (!over_)
    if (!do_next(lock)) changed_.wait(lock, [this] { return over_ || !tasks_.empty(); });
}

bool ThreadPool::do_next(std::unique_lock<std::mutex>& lock) {
  if (tasks_.empty()) return false;
  const auto task = std::move(tasks_.front());
  tasks_.pop_front();
  ++under_way_;
  lock.unlock();
  task();
  lock.lock();
  if (--under_way_ == 0 && tasks_.empty()) changed_.notify_all();
  return true;
}

}  // namespace troupe::store
