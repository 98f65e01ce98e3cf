/// When the operations of HostDevice's streams are executed: at once; later in a random order that streams and events allow, so that a
/// missing event or a missing synchronisation shows as a wrong number; or only when the host waits for something that needs them.
/// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "core/random.hpp"

namespace troupe::gpu::host {

/// How often an event was recorded, and how often it was reached.
struct EventState {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> reached{0};
  std::atomic<double> seconds{0};  // of a clock, when it was last reached
};

class HostQueue {
 public:
  using Work = std::function<void()>;
  using StreamId = std::uint64_t;

  /// seed: executes later, in an order that follows from it. None: at once, on the calling thread.
  /// lazy: an operation is executed when the host waits for its stream, or for one that waits for an event behind it: no sooner.
  HostQueue(std::optional<std::uint64_t> seed, bool lazy);

  [[nodiscard]] StreamId add_stream();
  /// REQUIRES that the stream is drained.
  void remove_stream(StreamId stream);
  void add(StreamId stream, Work work);
  void record(StreamId stream, const std::shared_ptr<EventState>& event);
  void wait(StreamId stream, const std::shared_ptr<EventState>& event);
  /// Executes all work of the stream so far, and some of others': of a lazy queue what it needs of them.
  void drain(StreamId stream);

 private:
  struct Item {
    Work work{};
    std::shared_ptr<EventState> event{};  // that it waits for; null: none
    std::uint64_t target = 0;             // until it was reached so often
    const EventState* records = nullptr;
  };
  void put(StreamId stream, Item item);
  /// Executes one item of a random stream that has one to execute.
  void advance();
  /// Executes the first item of a stream, and before it what it waits for.
  void execute_first(std::deque<Item>& items);

  const bool lazy_;
  const bool later_;
  std::mutex mutex_;
  core::Random random_;
  StreamId next_ = 0;
  std::map<StreamId, std::deque<Item>> waiting_;
};

}  // namespace troupe::gpu::host
