/// A whole company in virtual time, in one thread: the hosts and halves that real runs use, over ports that keep their
/// contract to the letter and no further. Requests of one worker to one shard keep their order; everything else may overtake.
/// Lent memory is guarded (memory.hpp), what nobody wrote is NaN, and a run that does not come to rest is an exception.
///
/// The cluster plays the coordinator: it hands out leases, and takes a member that has stopped out of the membership.
/// The whole run is a pure function of (strategy, options).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "explore/collectives.hpp"
#include "explore/network.hpp"
#include "explore/problem.hpp"
#include "explore/queue.hpp"
#include "explore/server.hpp"
#include "explore/trace.hpp"
#include "explore/words.hpp"
#include "explore/worker.hpp"

namespace troupe::explore {

class Cluster;

/// A worker is gone at a moment, or as soon then as it has an exchange in flight. For strategies without collectives: those are
/// started anew by a coordinator.
struct Loss {
  WorkerId worker = 0;
  Duration at{0};
  bool in_exchange = false;
};

struct ClusterOptions {
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::size_t floats = 80;  // a multiple of 16
  Step steps = 20;          // per worker, or on average where faster workers take more
  double epochs = 1;        // that these steps are
  std::uint64_t seed = 1;
  Delays delays = Delays::even;
  Carriage carriage = Carriage::in_place;
  core::OptimizerStep optimizer{.lr = 0.05F};
  int buckets = 3;  // 0: a backend that reports none
  double noise = 0.1;
  std::vector<double> slowdown{};  // of a step, per worker; none: 1
  std::vector<Loss> losses{};
  double mail_loss = 0;  // probability that a peer's message never arrives
  ServerKernelWatch on_server_kernel{};
  std::function<void(const Cluster&)> after_event{};
};

class Cluster {
 public:
  Cluster(const Strategy& strategy, ClusterOptions options);

  /// Until nothing is left to happen. A Violation when a worker or a request never gets its answer, or nothing ever rests.
  void run();

  [[nodiscard]] const ClusterOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Bowl& bowl() const noexcept { return bowl_; }
  [[nodiscard]] Worker& worker(WorkerId id) { return *workers_.at(id); }
  [[nodiscard]] const Worker& worker(WorkerId id) const { return *workers_.at(id); }
  [[nodiscard]] Server& server(ShardId id) { return *servers_.at(id); }
  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  [[nodiscard]] std::vector<float> center() const;  ///< all shards, one after the other
  [[nodiscard]] std::uint64_t leases_done() const noexcept { return leases_done_; }
  /// Σ a over the living, the mail on its way and the ledger of what was lost.
  [[nodiscard]] double weight() const noexcept;
  [[nodiscard]] double lost_weight() const noexcept { return lost_weight_; }  ///< the ledger: of lost mail and members
  [[nodiscard]] const core::Kernels& kernels() const noexcept { return core::reference_kernels(); }

  // For members.
  [[nodiscard]] EventQueue& queue() noexcept { return queue_; }
  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] Collectives& collectives() noexcept { return collectives_; }
  [[nodiscard]] std::optional<std::uint64_t> take_lease(WorkerId worker, Step step);
  void lease_done(WorkerId worker);
  [[nodiscard]] bool in_step() const noexcept { return in_step_; }
  [[nodiscard]] double epoch(std::uint64_t lease) const noexcept;
  [[nodiscard]] Duration step_time(WorkerId worker, Step step) const;
  void leave(WorkerId worker);
  void mail_sent(double weight) noexcept { mail_weight_ += weight; }
  void mail_arrived(double weight) noexcept { mail_weight_ -= weight; }
  void lose_weight(double weight) noexcept { lost_weight_ += weight; }

 private:
  void lose(WorkerId worker);
  void lose_who_exchanges();
  void require_rest() const;

  ClusterOptions options_;
  bool in_step_;
  Bowl bowl_;
  Trace trace_;
  EventQueue queue_;
  Network network_;
  Collectives collectives_;
  Membership membership_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::uint64_t next_lease_ = 0;
  std::deque<std::uint64_t> returned_leases_;
  std::vector<std::optional<std::uint64_t>> held_leases_;  // per worker
  std::uint64_t leases_done_ = 0;
  double mail_weight_ = 0;  // on its way
  double lost_weight_ = 0;
};

}  // namespace troupe::explore
