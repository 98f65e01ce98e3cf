/// A rule orders arithmetic but never sees the numbers, so the numbers themselves must show errors. The centre is rounded once to u: the
/// initial model in multiples of 1/16 (padding does not travel and is 0). From then on every push adds u: a shard's centre is its version
/// times u, bit for bit. A worker takes u from its first pull. All that it receives, and leaves in its slots, must be a multiple of u.
/// The square of each deviation is added to kError, and kError is part of every pushed vector: the centre stays correct only as long as
/// no probe has found a wrong number.
#pragma once

#include <vector>

#include "strategies/host/rule.hpp"

namespace troupe::contract {

inline constexpr strategies::Slot kScratch = strategies::staged(32);
inline constexpr strategies::Slot kUnmoved = strategies::staged(33);  // parameters of the kernel that only adds squares
inline constexpr strategies::Slot kError = strategies::staged(34);
inline constexpr strategies::Slot kUnit = strategies::staged(35);  // u
inline constexpr std::uint8_t kServerStates = 2;                   // used by begin_evidence(ServerActions)

/// The value of u where the initial model has `value`.
[[nodiscard]] float unit_of(float value) noexcept;

/// Adds the slots above to `slots`, for Needs::worker_slots.
[[nodiscard]] std::vector<strategies::Slot> with_evidence(std::vector<strategies::Slot> slots);

/// A shard's first action: writes the centre once.
void begin_evidence(strategies::ServerActions& then);

/// A worker's first action. Then the worker pulls kUnit, calls unit_is_of() for each shard with its version, and unit_is_here().
void begin_evidence(strategies::WorkerActions& then);
void unit_is_of(strategies::WorkerActions& then, strategies::Version version, strategies::Shards shard);
void unit_is_here(strategies::WorkerActions& then);

/// `slot` ← `times` u.
void fill_with(strategies::WorkerActions& then, strategies::Slot slot, double times, strategies::Shards shards = {});
/// `slot` ← what a push carries: u plus the errors so far.
void fill_unit(strategies::WorkerActions& then, strategies::Slot slot, strategies::Shards shards = {});

/// `slot` must be `times` u.
void expect(strategies::WorkerActions& then, strategies::Slot slot, double times, strategies::Shards shards = {});
/// `slot` must be as fill_unit() left it.
void expect_unit(strategies::WorkerActions& then, strategies::Slot slot, strategies::Shards shards = {});
/// `slot` must equal `other`.
void expect_same(strategies::WorkerActions& then, strategies::Slot slot, strategies::Slot other,
                 strategies::Shards shards = {});

}  // namespace troupe::contract
