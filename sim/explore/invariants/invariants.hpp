/// The invariants: general ones for every strategy, and a checker of each property that the strategy declares
/// (strategies/search/properties.hpp). To add one: a file here and a line in invariants.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/explore/schedule/schedule.hpp"
#include "sim/explore/world/invariant.hpp"

namespace troupe::explore {

using Invariants = std::vector<std::unique_ptr<Invariant>>;

/// `config`: the schedule's. `needs`: its strategy's. Errc::usage for a name that the registry does not have; Errc::internal for a
/// strategy that declares no properties.
[[nodiscard]] core::Result<Invariants> invariants_for(const Schedule& schedule, const core::Config& config,
                                                      const Needs& needs);

/// Every request is handled once and answered once. A shard's version grows by the number of writes to it and is never shown early. At
/// the end all work is done and every number is finite.
[[nodiscard]] std::unique_ptr<Invariant> general();

/// The checkers. What they check is said at the properties.
[[nodiscard]] std::unique_ptr<Invariant> checker(const EqualReplicas& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const BackupSteps& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const BoundedClocks& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const ElasticExchanges& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const SyncElasticRounds& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const PushesCount& property);
/// Throws std::logic_error for an optimizer of which it has no formula.
[[nodiscard]] std::unique_ptr<Invariant> checker(const OuterRounds& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const GossipWeights& property);
[[nodiscard]] std::unique_ptr<Invariant> checker(const MeansOfPairs& property);
/// `slot`: where the average is.
[[nodiscard]] std::unique_ptr<Invariant> checker(const MovingAverage& property, Slot slot);

}  // namespace troupe::explore
