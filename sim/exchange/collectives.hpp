/// Collectives in virtual time. A reduction or broadcast begins when the last member of its group has asked and all earlier collectives
/// of its members are over. It takes the time of its algorithm (sim/cluster/collective_costs.hpp). One thread.
#pragma once

#include <map>
#include <tuple>

#include "sim/cluster/collective_costs.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/pool.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::sim {

/// The operation of a group; all members must ask for the same.
struct CollectiveTask {
  strategies::Slot slot;
  int bucket = -1;
  bool broadcast = false;
  strategies::ReduceOp op = strategies::ReduceOp::mean;
  strategies::WorkerId root = 0;
  strategies::Rounding rounding = strategies::Rounding::none;  // none for a broadcast
  bool operator==(const CollectiveTask&) const = default;
};

/// A member's share of a collective.
struct CollectivePart {
  strategies::WorkerId worker = 0;
  Duration asked{0};
};

/// A collective of a group, waiting for members or running; then its parts are in rank order.
struct PendingCollective {
  strategies::Step step = 0;
  strategies::ExchangeId id = 0;
  CollectiveTask task;
  strategies::Group group;  ///< members, ascending
  std::vector<CollectivePart> parts;
  strategies::WorkerId last = 0;  ///< the last member to ask; `complete`: when
  Duration complete{0};
  std::uint64_t generation = 0;  ///< number of earlier collectives in this memory
};

class Collectives {
 public:
  Collectives(EventQueue& queue, const Cluster& cluster, Algorithm algorithm)
      : queue_(queue),
        cluster_(cluster),
        costs_(cluster, algorithm),
        free_(cluster.workers.size()),
        card_time_(cluster.hosts.size()) {}

  /// `worker` asks at `now` (its own clock). `group` is ascending. std::logic_error: members disagree, or one asks twice.
  void ask(strategies::WorkerId worker, Duration now, strategies::Step step, strategies::ExchangeId id,
           std::span<const strategies::WorkerId> group, const CollectiveTask& task, const Vector& vector);

  /// The collective of a collective_done event; null if it was abandoned meanwhile. close() ends it.
  [[nodiscard]] const PendingCollective* done(std::uint32_t collective, std::uint64_t generation) const;
  void close(std::uint32_t collective);
  /// Abandons the collectives of groups that contain one of `workers` (ascending), whether it has asked or not. No member is told.
  void abandon(std::span<const strategies::WorkerId> workers);

  [[nodiscard]] const CollectiveCosts& costs() const noexcept { return costs_; }
  [[nodiscard]] std::size_t open() const noexcept { return collectives_.used(); }
  /// By host: the time that collectives have kept its card busy, each way.
  [[nodiscard]] const std::vector<Duration>& card_time() const noexcept { return card_time_; }

 private:
  /// Groups with the same step and id are disjoint: the lowest rank distinguishes them.
  using Key = std::tuple<strategies::Step, strategies::ExchangeId, strategies::WorkerId>;
  void begin(std::uint32_t collective, const Vector& vector);

  EventQueue& queue_;
  const Cluster& cluster_;
  CollectiveCosts costs_;
  std::vector<Duration> free_;  // by worker: end of its latest collective
  std::map<Key, std::uint32_t> gathering_;
  Pool<PendingCollective> collectives_;
  std::vector<std::uint32_t> running_;
  std::vector<HostId> hosts_;  // scratch
  std::vector<Duration> card_time_;
};

}  // namespace troupe::sim
