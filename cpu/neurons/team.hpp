/// The threads of a neuron-parallel replica: rank 0 is the thread that owns the replica, every other rank has one of its own, which lives as
/// long as the team.
///
/// Thread rule: made, run and destroyed by one thread. Between two runs the other threads sleep. What a rank writes in a run is visible to
/// all ranks in the next, and to the owner after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::cpu {

class Team {
 public:
  /// `abandon`, called with a rank in its thread: the job of this rank has thrown; the others must not wait for it. Throws
  /// std::system_error when there are no threads left.
  Team(std::size_t ranks, std::function<void(std::size_t rank)> abandon);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size() + 1; }
  /// Runs `job` once for every rank, in its thread. Rethrows what the first rank threw that threw, after all ranks have ended. Each computes
  /// with one OpenMP thread.
  void run(const std::function<void(std::size_t rank)>& job);

 private:
  void serve(std::size_t rank);
  void run_one(std::size_t rank) noexcept;
  void stop() noexcept;

  const std::function<void(std::size_t)> abandon_;
  const std::function<void(std::size_t)>* job_ = nullptr;  // null: the threads end
  std::atomic<std::uint32_t> runs_{0};                     // begun
  std::atomic<std::uint32_t> running_{0};                  // threads that have not ended the current one
  std::mutex mutex_;
  std::exception_ptr thrown_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::cpu
