/// What a worker's exchanges put on the wire, each byte counted once, at who asked for it: payload, without frames and envelopes. Where
/// members share memory nothing travels: counted is what would, in float32. Pure.
#pragma once

#include <cstdint>
#include <memory>

#include "experiment/exchange_plan.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::experiment {

class WireBytes {
 public:
  /// `packing`: of arenas; read where the plan says `packed`.
  WireBytes(strategies::WorkerId self, ExchangePlan plan, std::shared_ptr<const exchange::Packing> packing);

  /// A slice [offset, offset + count) of an arena, there, back, or both.
  [[nodiscard]] std::uint64_t to_shard(strategies::ShardId shard, strategies::Transfer transfer,
                                       strategies::Rounding rounding, std::size_t offset, std::size_t count) const;
  /// A whole arena.
  [[nodiscard]] std::uint64_t letter(strategies::WorkerId to, std::size_t floats) const;
  /// The worker's part of a reduction, or with a `root` of a broadcast. `offset`: in an arena; none: the vector is of another kind.
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
