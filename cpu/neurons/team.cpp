#include "cpu/neurons/team.hpp"

#include <omp.h>

#include <utility>

namespace troupe::cpu {

Team::Team(std::size_t ranks, std::function<void(std::size_t)> abandon) : abandon_(std::move(abandon)) {
  try {
    for (std::size_t rank = 1; rank < ranks; ++rank) threads_.emplace_back([this, rank] { serve(rank); });
  } catch (...) {
    stop();
    throw;
  }
}

Team::~Team() { stop(); }

void Team::stop() noexcept {
  job_ = nullptr;
  runs_.fetch_add(1, std::memory_order_release);
  runs_.notify_all();
  threads_.clear();
}

void Team::run(const std::function<void(std::size_t)>& job) {
  job_ = &job;
  running_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  runs_.fetch_add(1, std::memory_order_release);
  runs_.notify_all();
  omp_set_num_threads(1);
  run_one(0);
  for (auto left = running_.load(std::memory_order_acquire); left > 0; left = running_.load(std::memory_order_acquire))
    running_.wait(left, std::memory_order_acquire);
  const std::lock_guard lock(mutex_);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Team::serve(std::size_t rank) {
  omp_set_num_threads(1);
  for (std::uint32_t seen = 0;; ++seen) {
    runs_.wait(seen, std::memory_order_acquire);  // the owner ends it at the latest with the team
    if (job_ == nullptr) return;
    run_one(rank);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void Team::run_one(std::size_t rank) noexcept {
  try {
    (*job_)(rank);
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
    }
    abandon_(rank);
  }
}

}  // namespace troupe::cpu
