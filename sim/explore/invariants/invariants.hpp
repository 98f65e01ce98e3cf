/// The invariants: general ones for every strategy, and a strategy's own, found by name. A strategy without its own gets the general ones
/// only. To add some: a file here and a line in invariants.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/explore/schedule/schedule.hpp"
#include "sim/explore/world/invariant.hpp"

namespace troupe::explore {

using Invariants = std::vector<std::unique_ptr<Invariant>>;

/// `config`: the schedule's. `needs`: its strategy's.
[[nodiscard]] Invariants invariants_for(const Schedule& schedule, const core::Config& config, const Needs& needs);

/// Every request is handled once and answered once. A shard's version grows by the number of writes to it and is never shown early. At
/// the end all work is done and every number is finite.
[[nodiscard]] std::unique_ptr<Invariant> general();
/// Σ a over living workers, peer messages in flight and lost weight is the same at every event, and within 2⁻⁴⁸ of 1.
[[nodiscard]] std::unique_ptr<Invariant> gossip_weights();
/// All workers that take a step start it with the same parameters, bit for bit; with `group_size`, the workers of a group do.
[[nodiscard]] std::unique_ptr<Invariant> equal_replicas(std::uint32_t group_size = ~std::uint32_t{0});
/// Backup workers: a step is closed once per shard, with N − b gradients of distinct workers and of that step only. A late gradient is
/// dropped, counted, and never applied.
[[nodiscard]] std::unique_ptr<Invariant> backup_steps(std::size_t backup);
/// No worker begins a clock more than s ahead of the slowest, and the parameters read at clock c contain every update of
/// clocks ≤ c − s − 1. `group_size`: groups of so many workers, each led by its first.
[[nodiscard]] std::unique_ptr<Invariant> ssp_clocks(Step s, Step steps_per_clock, std::uint32_t group_size = 1);
/// An exchange moves the centre by exactly α_s (x − c), and leaves the worker with x − α_w (x − c) or the answer α_w (x − c).
struct ElasticRule {
  double alpha_worker = 0;
  double alpha_server = 0;
  std::vector<double> schedule;  // by epoch, replaces both
};
[[nodiscard]] std::unique_ptr<Invariant> elastic_exchanges(const ElasticRule& rule);
/// Every push is applied once and makes one version. Without a server optimizer the centre is its start plus all pushes; `aware` divides
/// a push by its staleness.
[[nodiscard]] std::unique_ptr<Invariant> pushes_count(bool server_optimizer, bool aware);
/// A round of synchronous elastic averaging has every worker's x once, and c ← (1 − N α) c + α Σ x.
[[nodiscard]] std::unique_ptr<Invariant> sync_elastic_rounds(double alpha);
/// A round of local SGD follows this rule, computed independently in double precision.
struct OuterRule {
  bool nesterov = false;
  double lr = 1;
  double momentum = 0;
};
[[nodiscard]] std::unique_ptr<Invariant> outer_rounds(const OuterRule& rule, std::size_t quorum);
/// A pair has two workers, no worker is in two pairs of one round, and the pair's mean does not change.
[[nodiscard]] std::unique_ptr<Invariant> means_of_pairs();
/// The moving average of `mixed` follows every write of the centre.
[[nodiscard]] std::unique_ptr<Invariant> moving_average(double ema, Slot slot);

}  // namespace troupe::explore
