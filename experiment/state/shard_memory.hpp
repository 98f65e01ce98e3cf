/// A shard's numbers, whoever executes its server: the centre's slice and the server's state vectors. One thread at a time.
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

  /// The centre or a state vector; empty for a slot that there is not.
  [[nodiscard]] core::Span view(strategies::Slot slot);
  /// Runs `call`; kPayload is `payload`.
  void run(const strategies::KernelCall& call, core::Span payload);

 private:
  const core::Kernels* kernels_;
  core::Buffer center_;
  std::vector<core::Buffer> states_;
};

/// What `start` says of the centre, laid out as the workers' arenas are and cut into `count` shards with `states` state vectors
/// each. Errc::config when there are more shards than the model can be cut into; out_of_memory.
[[nodiscard]] core::Result<std::vector<ShardMemory>> cut_shards(const StartState& start, const nn::Layout& layout,
                                                                strategies::ShardId count, std::uint8_t states,
                                                                const core::Kernels& kernels, core::Allocator& memory);

}  // namespace troupe::experiment
