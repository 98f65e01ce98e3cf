/// Virtual time: events happen in the order of their times, and events of one time in the order in which they were planned.
/// That order is total, so a simulation is a pure function of its inputs. One thread.
///
/// An event is 32 plain bytes: a kind, who it happens to and one word. A steady queue allocates nothing: a 4-ary heap whose
/// four children share two cache lines. Cost of an event: one push and one pop, O(log4 n) with n events planned.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/clock.hpp"

namespace troupe::sim {

using core::Duration;

/// What happens. Who and what are said beside each: `who` → `what`.
enum class EventKind : std::uint32_t {
  worker_begins,    ///< worker → its life
  step_ends,        ///< worker → its life
  bucket_ready,     ///< worker → its life and the bucket
  worker_stops,     ///< worker → its life
  worker_deadline,  ///< worker → deadline
  server_deadline,  ///< shard → deadline
  packet_leaves,    ///< packet
  packet_head,      ///< packet: its first byte is at the receiving network card
  packet_here,      ///< packet
  collective_done,  ///< meeting
  all_quiet,        ///< every lease is done
  training_begins,  ///< after a pause
  time_is_up,       ///< run.max_seconds of training
  host_dies,        ///< host → 1: planned by mean time between failures
  loss_noticed,     ///< host
  host_returns,     ///< host
};

struct Event {
  std::int64_t at = 0;  // ns
  std::uint64_t order = 0;
  std::uint64_t what = 0;
  std::uint32_t who = 0;
  EventKind kind{};
};
static_assert(sizeof(Event) == 32);

class EventQueue final : public core::Clock {
 public:
  EventQueue();
  [[nodiscard]] Duration now() const noexcept override { return Duration{now_}; }
  /// `at` is not before now(): an earlier time is a bug (std::logic_error).
  void plan(Duration at, EventKind kind, std::uint32_t who, std::uint64_t what = 0);
  /// Takes the next event out and moves time to it; false when there is none.
  [[nodiscard]] bool next(Event& event);
  [[nodiscard]] std::size_t planned() const noexcept { return end_ - kRoot; }
  [[nodiscard]] std::uint64_t happened() const noexcept { return happened_; }

 private:
  /// Children of i are 4i − 8 … 4i − 5: with the root at 3 they fill one aligned group.
  static constexpr std::size_t kRoot = 3;
  struct alignas(128) Group {
    std::array<Event, 4> events;
  };
  [[nodiscard]] Event& at(std::size_t i) noexcept { return heap_[i >> 2].events[i & 3]; }

  std::vector<Group> heap_;
  std::size_t end_ = kRoot;  // one past the last
  std::int64_t now_ = 0;
  std::uint64_t planned_ = 0;
  std::uint64_t happened_ = 0;
};

}  // namespace troupe::sim
