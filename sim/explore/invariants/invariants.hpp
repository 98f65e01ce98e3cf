/// The invariants that there are: the general ones, for every strategy, and a strategy's own, found by its name. A strategy without
/// its own gets the general ones. To add some: a file here and a line in invariants.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/explore/world/invariant.hpp"
#include "sim/explore/schedule/schedule.hpp"

namespace troupe::explore {

using Invariants = std::vector<std::unique_ptr<Invariant>>;

/// `config` is the schedule's, `needs` its strategy's.
[[nodiscard]] Invariants invariants_for(const Schedule& schedule, const core::Config& config, const Needs& needs);

/// Every request is worked on once and answered once; a shard's version grows by what was written to it and is never shown before;
/// at the end all work is done, and no number is spoilt.
[[nodiscard]] std::unique_ptr<Invariant> general();
/// Σ a over the living, the mail on its way and the ledger of the lost is the same at every event, and 1 but for 2⁻⁵⁰.
[[nodiscard]] std::unique_ptr<Invariant> gossip_weights();
/// All workers that take a step take it from the same parameters, bit for bit: all of them, or those of a group of so many.
[[nodiscard]] std::unique_ptr<Invariant> equal_replicas(std::uint32_t group_size = ~std::uint32_t{0});
/// Backup workers: a step is closed once per shard, with N − b gradients of distinct workers and of that step alone; a late one is
/// dropped, counted, and never applied.
[[nodiscard]] std::unique_ptr<Invariant> backup_steps(std::size_t backup);
/// Nobody begins a clock more than s ahead of the slowest, and what is read at clock c holds every update of a clock ≤ c − s − 1.
/// `group_size`: the workers are groups of so many, led by their first.
[[nodiscard]] std::unique_ptr<Invariant> ssp_clocks(Step s, Step steps_per_clock, std::uint32_t group_size = 1);
/// An exchange moves the centre by exactly α_s (x − c), and leaves the worker x − α_w (x − c) or the answer α_w (x − c).
struct ElasticRule {
  double alpha_worker = 0;
  double alpha_server = 0;
  std::vector<double> schedule;  // by epoch, in place of both
};
[[nodiscard]] std::unique_ptr<Invariant> elastic_exchanges(const ElasticRule& rule);
/// Every push is applied once and makes one version. Without a server optimizer the centre is its start plus everything pushed, and
/// `aware` divides a push by its staleness.
[[nodiscard]] std::unique_ptr<Invariant> pushes_count(bool server_optimizer, bool aware);
/// A round of synchronous elastic averaging has everybody's x once, and c ← (1 − N α) c + α Σ x.
[[nodiscard]] std::unique_ptr<Invariant> sync_elastic_rounds(double alpha);
/// A round of local SGD, against the rule told again in double precision.
struct OuterRule {
  bool nesterov = false;
  double lr = 1;
  double momentum = 0;
};
[[nodiscard]] std::unique_ptr<Invariant> outer_rounds(const OuterRule& rule, std::size_t quorum);
/// Two meet in a pair, nobody in two pairs of one round, and their mean stays where it was.
[[nodiscard]] std::unique_ptr<Invariant> means_of_pairs();
/// The moving average that mixed keeps follows every write of the centre.
[[nodiscard]] std::unique_ptr<Invariant> moving_average(double ema, Slot slot);

}  // namespace troupe::explore
