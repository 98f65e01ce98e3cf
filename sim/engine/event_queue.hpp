/// Virtual time: events happen in order of time; events of one time happen in the order in which they were scheduled. This order is total,
/// so a simulation is a pure function of its inputs. One thread.
///
/// A hierarchical timing wheel (Varghese & Lauck 1987): eight levels of 256 slots, one level per byte of the time in nanoseconds. An
/// event is in the level of the highest byte in which its time differs from now, in the slot that this byte names. When time reaches a
/// slot of a higher level, its events move down in order. So an event moves at most once per byte of its delay and costs O(1), and events
/// of one time keep their order. A steady queue allocates nothing: slots are chains of blocks from a pool.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/clock.hpp"
#include "sim/engine/pool.hpp"

namespace troupe::sim {

using core::Duration;

/// What happens; beside each kind its `who` → `what`.
enum class EventKind : std::uint32_t {
  worker_begins,    ///< worker → its life
  step_ends,        ///< worker → its life
  bucket_ready,     ///< worker → its life and the bucket
  worker_stops,     ///< worker → its life
  worker_deadline,  ///< worker → deadline
  server_deadline,  ///< shard → deadline
  packet_leaves,    ///< packet
  packet_head,      ///< packet: its first byte has reached the receiving network card
  packet_here,      ///< packet
  collective_done,  ///< collective → its generation
  task_begins,      ///< order of the coordinator
  task_done,        ///< order of the coordinator
  evaluated,        ///< an evaluation beside training
  time_is_up,       ///< run.max_seconds of training
  host_dies,        ///< host → deaths before, or a mark that the cluster file asks for it
  loss_noticed,     ///< host
  host_returns,     ///< host
  action,           ///< of the schedule search (sim/explore/world/queue.hpp)
};

struct Event {
  std::int64_t at = 0;  // ns
  std::uint64_t what = 0;
  std::uint32_t who = 0;
  EventKind kind{};
};
static_assert(sizeof(Event) == 24);

class EventQueue final : public core::Clock {
 public:
  /// Called some time before an event happens, perhaps more than once: a chance to prefetch what the event will touch.
  using Foresee = void (*)(void* context, const Event& event);

  EventQueue();
  void foresee_with(Foresee foresee, void* context) noexcept { foresee_ = foresee, context_ = context; }
  [[nodiscard]] Duration now() const noexcept override { return Duration{now_}; }
  /// REQUIRES at >= now(), else std::logic_error. Throws OutOfTime when `at` is after the end of time.
  void schedule(Duration at, EventKind kind, std::uint32_t who, std::uint64_t what = 0);
  /// Removes the next event and moves time to it; false when there is none.
  [[nodiscard]] bool next(Event& event);
  [[nodiscard]] std::size_t scheduled() const noexcept { return scheduled_; }
  [[nodiscard]] std::uint64_t happened() const noexcept { return happened_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kLevels = 8, kSlots = 256;
  struct alignas(64) Block {  // 512 bytes
    std::uint32_t next = kNone;
    std::uint32_t count = 0;
    std::array<Event, 21> events;
  };
  struct Slot {  // events in order: a chain of blocks
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Level {
    std::array<Slot, kSlots> slots;
    std::array<std::uint64_t, kSlots / 64> filled{};                         // a bit per slot
    [[nodiscard]] std::size_t filled_from(std::size_t slot) const noexcept;  // kSlots: none
  };
  void put(const Event& event, std::int64_t base);
  void free_first_block(Slot& slot);
  bool move_down();

  std::vector<Level> levels_;
  Pool<Block> blocks_;
  std::uint32_t read_ = 0;  // events of the current slot's first block that have happened
  std::int64_t now_ = 0;
  std::size_t scheduled_ = 0;
  std::uint64_t happened_ = 0;
  Foresee foresee_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace troupe::sim
