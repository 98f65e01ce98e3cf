/// The basic types of strategies, hosts and ports. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.hpp"
#include "core/half.hpp"

namespace troupe::strategies {

using WorkerId = std::uint32_t;    ///< rank among the run's workers, from 0
using ShardId = std::uint32_t;     ///< slice of the centre, from 0
using Step = std::uint64_t;        ///< steps that one worker has begun or passed over, from 0; also SSP's clock
using Version = std::uint64_t;     ///< of one shard: updates applied to it since the run began
using ExchangeId = std::uint64_t;  ///< chosen by a worker rule, unique among its exchanges in flight
using RequestId = std::uint64_t;   ///< set by a server's port, unique within one shard, from 1
using DeadlineId = std::uint64_t;  ///< chosen by a rule
using core::Duration;
using core::Rounding;

/// A flat vector by name. The first seven kinds belong to a worker and have the arena's length; the last three belong to a server
/// and have the shard's length.
enum class SlotKind : std::uint8_t {
  params,      ///< the replica's float32 master
  grads,       ///< mean gradient of the latest step
  velocity,    ///< optimizer state; `index` counts further state vectors
  acc,         ///< a sum over several steps
  anchor,      ///< parameters at an earlier time
  staged,      ///< copies in flight, numbered by `index`
  statistics,  ///< running values of normalisation
  center,      ///< the shard
  state,       ///< server-side optimizer state or sum, numbered by `index`
  payload,     ///< the vector of the request being applied, or the space for its answer
};

struct Slot {
  SlotKind kind = SlotKind::params;
  std::uint8_t index = 0;
  auto operator<=>(const Slot&) const = default;
};

inline constexpr Slot kParams{SlotKind::params};
inline constexpr Slot kGrads{SlotKind::grads};
inline constexpr Slot kVelocity{SlotKind::velocity};
inline constexpr Slot kAcc{SlotKind::acc};
inline constexpr Slot kAnchor{SlotKind::anchor};
inline constexpr Slot kStatistics{SlotKind::statistics};
inline constexpr Slot kCenter{SlotKind::center};
inline constexpr Slot kPayload{SlotKind::payload};
[[nodiscard]] constexpr Slot staged(std::uint8_t k) noexcept { return {SlotKind::staged, k}; }
[[nodiscard]] constexpr Slot server_state(std::uint8_t k) noexcept { return {SlotKind::state, k}; }

/// Shards [first, first + count) of the centre, and the part of a worker's vectors that they are cut from: from the begin of the
/// first shard's slice to the end of the last one's. count 0 means all shards: the whole vector.
struct Shards {
  ShardId first = 0;
  ShardId count = 0;
  [[nodiscard]] constexpr bool all() const noexcept { return count == 0; }
  /// True if both contain a common shard.
  [[nodiscard]] constexpr bool meet(Shards other) const noexcept {
    return all() || other.all() || (first < other.first + other.count && other.first < first + count);
  }
  bool operator==(const Shards&) const = default;
};

/// The members, as the coordinator reports them. `epoch` is the number of the membership: it grows with every change, so that messages
/// of an older membership are recognised. It has nothing to do with an epoch of training.
struct Membership {
  std::uint64_t epoch = 0;
  std::vector<WorkerId> workers;  // alive, ascending
  [[nodiscard]] std::size_t size() const noexcept { return workers.size(); }
  bool operator==(const Membership&) const = default;
};

}  // namespace troupe::strategies
