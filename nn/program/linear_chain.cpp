#include "nn/program/linear_chain.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "nn/layer_types.hpp"

namespace troupe::nn {

core::Result<std::vector<LinearLink>> linear_chain(const Graph& graph) {
  const auto refuse = [&](const Node& node, std::string_view why) {
    return core::fail(
        core::Errc::config,
        fmt::format("model.parallel = \"neurons\" needs a chain of linear layers, each with one activation "
                    "or none: layer {} of {} {}",
                    node.name, graph.name(), why));
  };
  std::vector<LinearLink> links;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.inputs.size() != 1 || node.inputs.front() != static_cast<int>(i) - 1)
      return refuse(node, "does not follow the layer before it");
    if (const auto* linear = std::get_if<LinearLayer>(&node.layer)) {
      const auto weight = std::ranges::find(graph.parameters(), static_cast<int>(i), &Parameter::node);
      links.push_back({.node = static_cast<int>(i),
                       .first_parameter = static_cast<int>(weight - graph.parameters().begin()),
                       .inputs = graph.inputs_of(node).front().size(),
                       .outputs = linear->outputs});
    } else if (const auto* activation = std::get_if<ActivationLayer>(&node.layer)) {
      if (links.empty()) return refuse(node, "is an activation in front of the first linear layer");
      if (links.back().activation) return refuse(node, "is a second activation in a row");
      links.back().activation = activation->kind;
    } else if (!std::holds_alternative<FlattenLayer>(node.layer)) {
      return refuse(node, fmt::format("is of type {}", layer_type(node.layer)));
    }
  }
  if (links.empty()) return refuse(graph.nodes().back(), "ends a model without a linear layer");
  if (graph.heads().size() != 1)
    return refuse(graph.nodes()[static_cast<std::size_t>(graph.heads().front().node)], "has an auxiliary loss");
  return links;
}

}  // namespace troupe::nn
