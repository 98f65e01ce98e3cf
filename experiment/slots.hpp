/// A worker's flat vectors by name: the replica's arenas, and the further ones that optimizer and strategy need, allocated
/// once with the arena's length. Every vector can be lent: loans keep the memory alive. One thread.
#pragma once

#include <map>
#include <memory>

#include "core/buffer.hpp"
#include "nn/backend.hpp"
#include "strategies/host/types.hpp"

namespace troupe::experiment {

/// A slice of somebody's arena. `owner` keeps the memory alive for as long as the loan lasts, whatever ends meanwhile.
struct Lent {
  core::Span data;
  std::shared_ptr<const void> owner;
};

class Slots {
 public:
  /// `replica` is shared because loans of its arenas may outlive the worker.
  [[nodiscard]] static core::Result<Slots> create(std::shared_ptr<nn::Replica> replica, core::Allocator& allocator,
                                                  const std::vector<strategies::Slot>& extra);

  /// Empty for a slot that was not asked for (an optimizer without velocity).
  [[nodiscard]] core::Span view(strategies::Slot slot);
  /// [offset, offset + count) of `slot`, on loan.
  [[nodiscard]] Lent lend(strategies::Slot slot, std::size_t offset, std::size_t count);

 private:
  std::shared_ptr<nn::Replica> replica_;
  std::map<strategies::Slot, std::shared_ptr<core::Buffer>> extra_;
};

}  // namespace troupe::experiment
