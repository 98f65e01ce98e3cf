/// Exchanges beside a computation: a thread that drives a Rank, while another one computes and says which parts of the vector are ready.
///
/// begin() and finish() are the computing thread's; the Rank is this object's alone for as long as it lives.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/rank.hpp"

namespace troupe::bench {

class Exchanger {
 public:
  explicit Exchanger(Rank& rank);
  ~Exchanger();
  Exchanger(const Exchanger&) = delete;
  Exchanger& operator=(const Exchanger&) = delete;

  /// Begins the mean of a part that no exchange has; every rank begins the same parts in the same order. Returns at once.
  void begin(transport::Slice part);
  /// Returns when all that was begun has ended.
  [[nodiscard]] core::Result<void> finish();

 private:
  void run();
  bool look();  // true: it is over
  void ended(core::Result<void> result);

  Rank& rank_;
  const int wake_;                                                  // an eventfd
  std::list<std::unique_ptr<exchange::Collective>> collectives_{};  // the thread's
  std::uint32_t next_ = 0;                                          // the thread's: number of the next exchange

  std::mutex mutex_;
  std::condition_variable all_ended_;
  // Guarded by mutex_:
  std::vector<transport::Slice> begun_;
  std::size_t open_ = 0;
  core::Result<void> result_{};
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace troupe::bench
