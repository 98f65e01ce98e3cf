/// Bytes that a worker's exchanges put on the wire, each byte counted once, at the member that asked for it: payload, without frames and
/// envelopes. Members that share memory send nothing: the float32 size of the exchange is counted. Pure.
#pragma once

#include <cstdint>
#include <memory>

#include "experiment/exchange_plan.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::experiment {

class WireBytes {
 public:
  /// `packing`: of arenas; used where the plan says `packed`.
  WireBytes(strategies::WorkerId self, ExchangePlan plan, std::shared_ptr<const exchange::Packing> packing);

  /// A slice [offset, offset + count) of an arena, sent there, back, or both.
  [[nodiscard]] std::uint64_t to_shard(strategies::ShardId shard, strategies::Transfer transfer,
                                       strategies::Rounding rounding, std::size_t offset, std::size_t count) const;
  /// A whole arena.
  [[nodiscard]] std::uint64_t peer_message(strategies::WorkerId to, std::size_t floats) const;
  /// The worker's part of a reduction, or with `root` of a broadcast. `offset`: in an arena; none: the vector is not of an arena.
  [[nodiscard]] std::uint64_t collective(const strategies::Group& group, std::optional<strategies::WorkerId> root,
                                         strategies::Rounding rounding, std::optional<std::size_t> offset,
                                         std::size_t count) const;

 private:
  [[nodiscard]] std::size_t travelling(std::size_t offset, std::size_t count) const;

  const strategies::WorkerId self_;
  const ExchangePlan plan_;
  const std::shared_ptr<const exchange::Packing> packing_;
};

}  // namespace troupe::experiment
