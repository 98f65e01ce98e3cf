#include "service/http/worker.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace troupe::service {

void work_in_background() noexcept {
  // Of this thread only, as Linux has it. A lower priority is never refused, and nothing depends on it.
  const sched_param none{};
  if (::sched_getscheduler(0) == SCHED_OTHER) ::sched_setscheduler(0, SCHED_BATCH, &none);
  const auto self = static_cast<id_t>(::gettid());
  if (::getpriority(PRIO_PROCESS, self) < kBackgroundNice) ::setpriority(PRIO_PROCESS, self, kBackgroundNice);
}

Worker::Worker(Tick tick, std::size_t most_waiting) : tick_(std::move(tick)), most_(most_waiting) {
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() { stop(); }

bool Worker::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (stop_.stop_requested() || tasks_.size() >= most_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void Worker::stop() {
  std::deque<Task> dropped;
  {
    const std::scoped_lock lock(mutex_);
    stop_.request_stop();
    dropped.swap(tasks_);
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  work_in_background();
  using Clock = std::chrono::steady_clock;
  constexpr auto kNever = Clock::time_point::max();
  auto next = tick_ ? Clock::now() : kNever;
  std::unique_lock lock(mutex_);
  while (!stop_.stop_requested()) {
    const bool due = Clock::now() >= next;
    if (!due && tasks_.empty()) {
      if (next == kNever)
        changed_.wait(lock);
      else
        changed_.wait_until(lock, next);
      continue;
    }
    Task task;
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    lock.unlock();
    if (task) task();
    task = nullptr;
    if (tick_ && (due || next == kNever)) {
      const auto wait = tick_();
      next = wait ? Clock::now() + *wait : kNever;
    }
    lock.lock();
  }
}

}  // namespace troupe::service
