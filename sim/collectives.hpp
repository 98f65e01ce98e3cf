/// Collectives in virtual time: a reduction or broadcast begins when the last member of its group has asked and every member's former
/// ones are over, and takes the time that its algorithm costs (sim/cluster/collective_costs.hpp). One thread.
#pragma once

#include <map>
#include <tuple>

#include "sim/cluster/collective_costs.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/pool.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::sim {

/// What a group does together: all its members must ask for the same.
struct CollectiveTask {
  strategies::Slot slot;
  int bucket = -1;
  bool broadcast = false;
  strategies::ReduceOp op = strategies::ReduceOp::mean;
  strategies::WorkerId root = 0;
  strategies::Rounding rounding = strategies::Rounding::none;  // of a broadcast: none
  bool operator==(const CollectiveTask&) const = default;
};

/// A member's share of a collective.
struct CollectivePart {
  strategies::WorkerId worker = 0;
  Duration asked{0};
};

/// A group that is coming together, or has: its parts in rank order then.
struct Meeting {
  strategies::Step step = 0;
  strategies::ExchangeId id = 0;
  CollectiveTask task;
  strategies::Group group;  ///< who is to come, ascending
  std::vector<CollectivePart> parts;
  strategies::WorkerId last = 0;  ///< who came last, and when
  Duration complete{0};
  std::uint64_t era = 0;  ///< meetings that have had this memory
};

class Collectives {
 public:
  Collectives(EventQueue& queue, const Cluster& cluster, Algorithm algorithm)
      : queue_(queue), cluster_(cluster), costs_(cluster, algorithm), free_(cluster.workers.size()) {}

  /// `worker` asks at `now` (its own clock). `group` ascending. std::logic_error: the group disagrees, or a member asks twice.
  void ask(strategies::WorkerId worker, Duration now, strategies::Step step, strategies::ExchangeId id,
           std::span<const strategies::WorkerId> group, const CollectiveTask& task, const Vector& vector);

  /// The meeting that collective_done names; nothing when it was given up meanwhile. close() ends it.
  [[nodiscard]] const Meeting* done(std::uint32_t meeting, std::uint64_t era) const;
  void close(std::uint32_t meeting);
  /// Collectives of groups that one of `workers` (ascending) belongs to are given up, whether it has asked yet or not: nobody is told.
  void abandon(std::span<const strategies::WorkerId> workers);

  [[nodiscard]] std::size_t open() const noexcept { return meetings_.used(); }

 private:
  /// Groups that use the same numbers are disjoint: the lowest rank tells them apart.
  using Key = std::tuple<strategies::Step, strategies::ExchangeId, strategies::WorkerId>;
  void begin(std::uint32_t meeting, const Vector& vector);

  EventQueue& queue_;
  const Cluster& cluster_;
  CollectiveCosts costs_;
  std::vector<Duration> free_;  // by worker: its collectives so far are over
  std::map<Key, std::uint32_t> gathering_;
  Pool<Meeting> meetings_;
  std::vector<std::uint32_t> running_;
  std::vector<HostId> hosts_;  // scratch
};

}  // namespace troupe::sim
