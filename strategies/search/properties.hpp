/// What holds in every run of a strategy, under any schedule: the strategy declares it, sim/explore/invariants checks it at every
/// event. One struct per property, with its numbers. To add one: a struct here, an entry in Property, and its checker, which the
/// compiler then asks for in sim/explore/invariants/invariants.cpp. Plain data.
#pragma once

#include <cstddef>
#include <limits>
#include <variant>
#include <vector>

#include "core/optimizers/optimizers.hpp"
#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// All workers that take a step start it with the same parameters, bit for bit; with `group_size`, the workers of a group do.
struct EqualReplicas {
  std::uint32_t group_size = std::numeric_limits<std::uint32_t>::max();
};

/// Backup workers: a step is closed once per shard, with N − backup gradients of distinct workers and of that step only. A late gradient
/// is dropped, counted, and never applied.
struct BackupSteps {
  std::size_t backup = 0;
};

/// No worker begins a clock more than s ahead of the slowest, and the parameters read at clock c contain every update of
/// clocks ≤ c − s − 1. `group_size`: groups of so many workers, each led by its first.
struct BoundedClocks {
  Step s = 0;
  Step steps_per_clock = 1;
  std::uint32_t group_size = 1;
};

/// An exchange moves the centre by exactly α_s (x − c), and leaves the worker with x − α_w (x − c) or the answer α_w (x − c).
struct ElasticExchanges {
  double alpha_worker = 0;
  double alpha_server = 0;
  std::vector<double> schedule{};  // by epoch, replaces both
};

/// A round of synchronous elastic averaging has every worker's x once, and c ← (1 − N α) c + α Σ x.
struct SyncElasticRounds {
  double alpha = 0;
};

/// Every push is applied once and makes one version. Without a server optimizer the centre is its start plus all pushes; if
/// `staleness_aware`, a push is divided by its staleness.
struct PushesCount {
  bool server_optimizer = false;
  bool staleness_aware = false;
};

/// A round moves the centre by one step of this optimizer with the mean of its contributions; every contribution counts once, in its
/// round or, if late, in the next.
struct OuterRounds {
  core::OptimizerKind optimizer = core::OptimizerKind::sgd;
  double lr = 1;
  double momentum = 0;
  std::size_t quorum = 0;  // 0: all members
};

/// Σ a over living workers, peer messages in flight and lost weight is the same at every event, and within 2⁻⁴⁸ of 1.
struct GossipWeights {};

/// A pair has two workers, no worker is in two pairs of one round, and the pair's mean does not change.
struct MeansOfPairs {};

/// Needs::model_slot is e ← decay · e + (1 − decay) · c after every write of the centre.
struct MovingAverage {
  double decay = 0;
};

using Property = std::variant<EqualReplicas, BackupSteps, BoundedClocks, ElasticExchanges, SyncElasticRounds,
                              PushesCount, OuterRounds, GossipWeights, MeansOfPairs, MovingAverage>;
using Properties = std::vector<Property>;

}  // namespace troupe::strategies
