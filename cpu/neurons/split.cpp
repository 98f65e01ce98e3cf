#include "cpu/neurons/split.hpp"

#include <algorithm>

namespace troupe::cpu {

core::Slice neurons_of(std::int64_t neurons, std::size_t rank, std::size_t ranks) {
  const auto all = static_cast<std::size_t>(neurons);
  const std::size_t share = all / ranks;
  const std::size_t longer = all % ranks;
  return {rank * share + std::min(rank, longer), share + (rank < longer ? 1 : 0)};
}

std::vector<SplitLayer> split_layers(const std::vector<nn::LinearLink>& links, std::int64_t batch, std::size_t ranks) {
  const auto samples = static_cast<std::size_t>(batch);
  std::vector<SplitLayer> layers;
  for (const nn::LinearLink& link : links) {
    SplitLayer layer{.link = link, .neurons = {}, .values = {}};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto own = neurons_of(link.outputs, rank, ranks);
      layer.neurons.push_back(own);
      layer.values.push_back({own.offset * samples, own.count * samples});
      if (own.count > 0) ++layer.owners;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace troupe::cpu
