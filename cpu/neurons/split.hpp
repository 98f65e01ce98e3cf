/// How the neurons of linear layers are divided among ranks. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/buffer.hpp"
#include "nn/program/linear_chain.hpp"

namespace troupe::cpu {

/// The neurons of rank `rank` when a layer of `neurons` is cut for `ranks` ranks: adjacent slices, the first `neurons` % `ranks` of them one
/// longer. With more ranks than neurons the last ranks have none.
[[nodiscard]] core::Slice neurons_of(std::int64_t neurons, std::size_t rank, std::size_t ranks);

/// One linear layer. Its outputs are kept by neuron, [outputs, batch], so that each rank's part is one piece.
struct SplitLayer {
  nn::LinearLink link;
  std::vector<core::Slice> neurons;  // by rank
  std::vector<core::Slice> values;   // by rank, in floats of [outputs, batch]
  std::size_t owners = 0;            // ranks that have neurons: 0 … owners − 1

  [[nodiscard]] std::size_t value_count() const noexcept { return values.back().offset + values.back().count; }
};

[[nodiscard]] std::vector<SplitLayer> split_layers(const std::vector<nn::LinearLink>& links, std::int64_t batch,
                                                   std::size_t ranks);

}  // namespace troupe::cpu
