#include "nn/program/buckets.hpp"

namespace troupe::nn {

CutBuckets cut_buckets(const Graph& graph, const Layout& layout, std::size_t floats) {
  const auto& parameters = graph.parameters();
  CutBuckets cut;
  std::size_t end = layout.arena_floats();
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const bool first_of_node = i == 0 || parameters[i - 1].node != parameters[i].node;
    const auto offset = static_cast<std::size_t>(layout.tensors()[i].offset);
    if (!first_of_node || (i > 0 && end - offset < floats)) continue;
    cut.last_nodes.push_back(parameters[i].node);
    cut.buckets.push_back({offset, end - offset});
    end = offset;
  }
  return cut;
}

}  // namespace troupe::nn
