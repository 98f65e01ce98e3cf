/// What compilers of steps ask about a graph: which layers can be fused, what belongs to a node. Compile time only. Thread rule: pure.
#pragma once

#include <algorithm>

#include "nn/graph.hpp"

namespace troupe::nn {

[[nodiscard]] const Node& node_at(const Graph& graph, int i);

/// Whether a loss is computed on node `i`.
[[nodiscard]] bool is_head(const Graph& graph, int i);

/// The only reader of node `i`, if nothing else sees its value; -1 if there is none.
[[nodiscard]] int only_reader(const Graph& graph, int i);

/// The node of an activation that can be fused with node `i`: matrix products with any, batch normalisation and sums of two with
/// relu. -1: none.
[[nodiscard]] int activation_behind(const Graph& graph, int i);

/// The number of these (parameters, statistics) that belong to node `i`.
template <class Tensors>
[[nodiscard]] int count_of(const Tensors& tensors, int i) {
  return static_cast<int>(std::ranges::count_if(tensors, [&](const auto& tensor) { return tensor.node == i; }));
}

/// The index of the first that belongs to node `i`; those of a node are adjacent. -1: none.
template <class Tensors>
[[nodiscard]] int first_of(const Tensors& tensors, int i) {
  const auto first = std::ranges::find_if(tensors, [&](const auto& tensor) { return tensor.node == i; });
  return first == tensors.end() ? -1 : static_cast<int>(first - tensors.begin());
}

}  // namespace troupe::nn
