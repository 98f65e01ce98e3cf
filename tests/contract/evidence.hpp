/// Numbers that a rule asks for and never sees must speak for themselves. The centre is rounded once to u, the model that the run
/// begins with in multiples of 1/16 (padding, which travels on no wire, is 0 then). From there on every push adds u, so the centre of
/// a shard is its version times u, bit for bit. A worker takes u from its first pull. What it gets and leaves in its slots should be
/// multiples of u, too: what differs is squared and summed up in kError, and that is part of every vector that it pushes; so the
/// centre stays what it should be only while nobody has found a wrong number.
#pragma once

#include <vector>

#include "strategies/host/half.hpp"

namespace troupe::contract {

inline constexpr strategies::Slot kScratch = strategies::staged(32);
inline constexpr strategies::Slot kUnmoved = strategies::staged(33);  // what a kernel that only squares steps from
inline constexpr strategies::Slot kError = strategies::staged(34);
inline constexpr strategies::Slot kUnit = strategies::staged(35);  // u
inline constexpr std::uint8_t kServerStates = 2;                   // that begin_evidence(ServerActions) needs

/// What u is where the model begins with `value`.
[[nodiscard]] float unit_of(float value) noexcept;

/// Names the slots above, for Needs::worker_slots.
[[nodiscard]] std::vector<strategies::Slot> with_evidence(std::vector<strategies::Slot> slots);

/// Of a shard, before anything else: one write of the centre.
void begin_evidence(strategies::ServerActions& then);

/// Of a worker, before anything else; then it pulls kUnit, and says shard by shard of which version it came.
void begin_evidence(strategies::WorkerActions& then);
void unit_is_of(strategies::WorkerActions& then, strategies::Version version, strategies::Shards shard);
void unit_is_here(strategies::WorkerActions& then);

/// `slot` ← `times` u.
void fill_with(strategies::WorkerActions& then, strategies::Slot slot, double times, strategies::Shards shards = {});
/// `slot` ← what a push carries: u, and what was wrong so far.
void fill_unit(strategies::WorkerActions& then, strategies::Slot slot, strategies::Shards shards = {});

/// `slot` should be `times` u.
void expect(strategies::WorkerActions& then, strategies::Slot slot, double times, strategies::Shards shards = {});
/// `slot` should still be as fill_unit() left it.
void expect_unit(strategies::WorkerActions& then, strategies::Slot slot, strategies::Shards shards = {});
/// `slot` should be what `other` is.
void expect_same(strategies::WorkerActions& then, strategies::Slot slot, strategies::Slot other,
                 strategies::Shards shards = {});

}  // namespace troupe::contract
