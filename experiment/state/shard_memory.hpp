/// A shard's vectors: its slice of the centre and the server's state vectors. Independent of the server's host. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "core/buffer.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/layout.hpp"
#include "strategies/host/kernel_call.hpp"

namespace troupe::experiment {

class ShardMemory {
 public:
  ShardMemory(const core::Kernels& kernels, core::Buffer center, std::vector<core::Buffer> states)
      : kernels_(&kernels), center_(std::move(center)), states_(std::move(states)) {}

  /// The centre or a state vector; empty for a slot that does not exist.
  [[nodiscard]] core::Span view(strategies::Slot slot);
  /// Runs `call` with `payload` as kPayload.
  void run(const strategies::KernelCall& call, core::Span payload);

 private:
  const core::Kernels* kernels_;
  core::Buffer center_;
  std::vector<core::Buffer> states_;
};

/// Lays the centre of `start` out as the workers' arenas, and cuts it into `count` shards with `states` state vectors each. Errc::config
/// when the model cannot be cut into that many shards; out_of_memory; those of `kernels`, which are for `memory`.
[[nodiscard]] core::Result<std::vector<ShardMemory>> cut_shards(const StartState& start, const nn::Layout& layout,
                                                                strategies::ShardId count, std::uint8_t states,
                                                                const core::Kernels& kernels, core::Allocator& memory);

}  // namespace troupe::experiment
