/// Exchanges beside a computation: one thread drives a Rank while another computes and reports which parts of the vector are ready.
///
/// The computing thread calls begin() and finish(). This object is the only user of the Rank during its life.
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

  /// Begins the mean of a part that is in no other exchange; every rank begins the same parts in the same order. Returns at once.
  void begin(core::Slice part);
  /// Returns when all exchanges have ended.
  [[nodiscard]] core::Result<void> finish();

 private:
  void run();
  bool look();  // true: finished
  void ended(core::Result<void> result);

  Rank& rank_;
  const int wake_;                                                  // an eventfd
  std::list<std::unique_ptr<exchange::Collective>> collectives_{};  // the thread's
  std::uint32_t next_ = 0;                                          // the thread's: number of the next exchange

  std::mutex mutex_;
  std::condition_variable all_ended_;
  // Guarded by mutex_:
  std::vector<core::Slice> begun_;
  std::size_t open_ = 0;
  core::Result<void> result_{};
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace troupe::bench
