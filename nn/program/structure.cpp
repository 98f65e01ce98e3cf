#include "nn/program/structure.hpp"

namespace troupe::nn {

const Node& node_at(const Graph& graph, int i) { return graph.nodes()[static_cast<std::size_t>(i)]; }

bool is_head(const Graph& graph, int i) {
  return std::ranges::find(graph.heads(), i, &Head::node) != graph.heads().end();
}

int only_reader(const Graph& graph, int i) {
  const auto& readers = graph.readers(i);
  return readers.size() == 1 && !is_head(graph, i) ? readers.front() : -1;
}

int activation_behind(const Graph& graph, int i) {
  const int next = only_reader(graph, i);
  if (next < 0) return -1;
  const auto* activation = std::get_if<ActivationLayer>(&node_at(graph, next).layer);
  if (activation == nullptr) return -1;
  const Node& node = node_at(graph, i);
  const bool product =
      std::holds_alternative<LinearLayer>(node.layer) || std::holds_alternative<Conv2dLayer>(node.layer);
  const bool sum = std::holds_alternative<AddLayer>(node.layer) && node.inputs.size() == 2;
  const bool with_relu = std::holds_alternative<BatchNormLayer>(node.layer) || sum;
  return product || (with_relu && activation->kind == Activation::relu) ? next : -1;
}

}  // namespace troupe::nn
