/// The effect of the wire on vectors between members of different sites, computed as exchangers and transport/exchange/rpc.hpp do it:
/// without padding where the run packed, rounded as far as core::Rounding allows on a 16-bit wire. Members of one site lend each other
/// memory, so vectors stay unchanged. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/state/worker_memory.hpp"
#include "strategies/host/types.hpp"
#include "transport/exchange/packing.hpp"

namespace troupe::replay {

/// Offset of a vector in an arena. None: a vector of another kind, sent unpacked.
using Position = std::optional<std::size_t>;

class Wire {
 public:
  /// `packing`: of the run's arenas; null: nothing is packed. All references outlive the object.
  Wire(const experiment::ExchangePlan& plan, std::shared_ptr<const exchange::Packing> packing,
       const core::Kernels& kernels, core::Allocator& memory);

  [[nodiscard]] bool is_between(strategies::WorkerId worker, strategies::ShardId shard) const;
  [[nodiscard]] bool is_between_workers(strategies::WorkerId one, strategies::WorkerId other) const;

  /// The memory at another site for a lent vector: the vector as it arrives there if `filled`, else zeros.
  [[nodiscard]] experiment::BorrowedView room(core::ConstSpan vector, Position position, bool filled,
                                              core::Rounding rounding) const;
  /// A worker's arena as another worker receives it.
  [[nodiscard]] experiment::BorrowedView peer_message(strategies::WorkerId from, strategies::WorkerId to,
                                                      core::ConstSpan arena) const;
  /// `to` ← `from`, where `from` is the result for the vector that `to` holds as it was sent. Equal lengths; padding that is not sent
  /// stays unchanged.
  void send_back(core::ConstSpan from, core::Span to, Position position, core::Rounding rounding) const;

  /// `vector` in the form in which it is sent: without padding. REQUIRES travels_packed(position) for both functions.
  [[nodiscard]] bool travels_packed(Position position) const noexcept { return packing_ && position; }
  [[nodiscard]] core::Buffer packed(core::ConstSpan vector, std::size_t position) const;
  void unpack(core::ConstSpan dense, std::size_t position, core::Span vector) const;

 private:
  [[nodiscard]] core::Buffer buffer(std::size_t floats) const;
  void round(core::Span vector) const;
  void change(core::Span vector, core::ConstSpan now) const;
  /// Calls `act(to, from)` on both vectors in the form in which they are sent.
  template <class Act>
  void travel(core::ConstSpan from, core::Span to, Position position, Act act) const;

  const experiment::ExchangePlan& plan_;
  std::shared_ptr<const exchange::Packing> packing_;
  const core::Kernels& kernels_;
  core::Allocator& memory_;
};

}  // namespace troupe::replay
