/// What vectors go through between members of different sites, computed as exchangers and transport/exchange/calls.hpp do it: without their padding
/// where the run left it out, rounded as far as core::Rounding lets a wire of 16 bits. Members of one site lend each other memory, and
/// nothing happens to it. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "transport/exchange/packing.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/state/worker_memory.hpp"
#include "strategies/host/types.hpp"

namespace troupe::replay {

/// Where a vector begins in an arena; none: it is of another kind, and travels as it is.
using Position = std::optional<std::size_t>;

class Wire {
 public:
  /// `packing`: of the run's arenas; none: nothing is packed. All references outlive the object.
  Wire(const experiment::ExchangePlan& plan, std::shared_ptr<const exchange::Packing> packing,
       const core::Kernels& kernels, core::Allocator& memory);

  [[nodiscard]] bool is_between(strategies::WorkerId worker, strategies::ShardId shard) const;
  [[nodiscard]] bool is_between_workers(strategies::WorkerId one, strategies::WorkerId other) const;

  /// Room elsewhere for a vector that is lent: with what it holds, as it arrives there, or zeros where only room is lent.
  [[nodiscard]] experiment::Lent room(core::ConstSpan vector, Position position, bool filled,
                                      core::Rounding rounding) const;
  /// A worker's arena as another one reads it.
  [[nodiscard]] experiment::Lent letter(strategies::WorkerId from, strategies::WorkerId to,
                                        core::ConstSpan arena) const;
  /// `to` ← `from`, what became of a vector that stands in `to` as it was sent. Equal lengths; padding that does not travel stays as it
  /// is.
  void send_back(core::ConstSpan from, core::Span to, Position position, core::Rounding rounding) const;

  /// `vector` as it travels: without padding. REQUIRES travels_packed(position) for both.
  [[nodiscard]] bool travels_packed(Position position) const noexcept { return packing_ && position; }
  [[nodiscard]] core::Buffer packed(core::ConstSpan vector, std::size_t position) const;
  void unpack(core::ConstSpan dense, std::size_t position, core::Span vector) const;

 private:
  [[nodiscard]] core::Buffer buffer(std::size_t floats) const;
  void round(core::Span vector) const;
  void change(core::Span vector, core::ConstSpan now) const;
  /// `act(to, from)` on both as they travel.
  template <class Act>
  void travel(core::ConstSpan from, core::Span to, Position position, Act act) const;

  const experiment::ExchangePlan& plan_;
  std::shared_ptr<const exchange::Packing> packing_;
  const core::Kernels& kernels_;
  core::Allocator& memory_;
};

}  // namespace troupe::replay
