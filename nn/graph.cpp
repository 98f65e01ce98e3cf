#include "nn/graph.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/nearest.hpp"
#include "nn/node_names.hpp"
#include "nn/shape_inference.hpp"

namespace troupe::nn {

std::string to_string(const Shape& shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("{}", shape.channels);
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

std::int64_t Parameter::size() const noexcept {
  std::int64_t size = 1;
  for (const auto extent : shape) size *= extent;
  return size;
}

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  // of a program's tensor

/// "with input 1x28x28", "with inputs b1 16x8x8, pool1 32x8x8".
std::string describe_inputs(const Graph& graph, const std::vector<int>& inputs, std::span<const Shape> shapes) {
  if (inputs.size() == 1) return fmt::format("with input {}", to_string(shapes.front()));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    texts.push_back(fmt::format("{} {}",
                                inputs[i] < 0 ? "input" : graph.nodes()[static_cast<std::size_t>(inputs[i])].name,
                                to_string(shapes[i])));
  return fmt::format("with inputs {}", fmt::join(texts, ", "));
}

}  // namespace

core::Result<Graph> Graph::build(std::string name, Shape input, const std::vector<NodeSpec>& nodes, Loss loss,
                                 const std::vector<AuxiliaryLoss>& auxiliary, const GraphPlaces& places) {
  const auto model = places.model.empty() ? fmt::format("model \"{}\"", name) : places.model;
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("{}: {}", model, why));
  };
  const auto place_of = [&](std::size_t node, const std::string& node_name) {
    return places.layers.empty() ? fmt::format("{}: layer \"{}\"", model, node_name) : places.layers.at(node);
  };
  if (!is_bounded(input))
    return refuse(fmt::format("its input {}x{}x{} is not a shape of positive, bounded extents", input.channels,
                              input.height, input.width));
  if (nodes.empty()) return refuse("it has no layers");

  Graph graph;
  graph.name_ = std::move(name);
  graph.input_ = input;
  graph.loss_ = loss;
  NodeNames names;
  std::map<std::string, int> indices{{std::string(kInputName), -1}};
  for (const NodeSpec& spec : nodes) {
    const int index = static_cast<int>(graph.nodes_.size());
    const auto place = place_of(static_cast<std::size_t>(index), spec.name);
    const auto node_name = names.take(spec.layer, spec.name);
    if (node_name.empty())
      return core::fail(core::Errc::config,
                        fmt::format("{}: the name \"{}\" is that of another layer", place, spec.name));
    Node node{node_name, spec.layer, {}, {}};
    for (const auto& wanted : spec.inputs) {
      const auto found = indices.find(wanted);
      if (found == indices.end())
        return core::fail(core::Errc::config, fmt::format("{}: no earlier layer is called \"{}\"{}",
                                                          place_of(static_cast<std::size_t>(index), node_name), wanted,
                                                          core::nearest_hint(wanted, names.all(), core::Quotes::yes)));
      node.inputs.push_back(found->second);
    }
    if (node.inputs.empty()) node.inputs = {index - 1};
    indices.emplace(node_name, index);
    const auto shapes = graph.inputs_of(node);
    InferredLayer inferred;
    if (const Problem problem = infer(spec.layer, shapes, inferred))
      return core::fail(core::Errc::config,
                        fmt::format("{} {}: {}", place_of(static_cast<std::size_t>(index), node_name),
                                    describe_inputs(graph, node.inputs, shapes), *problem));
    node.output = inferred.output;
    graph.add(std::move(node), inferred);
  }
  if (graph.parameters_.empty()) return refuse("no layer has parameters: there is nothing to train");
  if (auto headed = graph.set_heads(auxiliary, names.all()); !headed) return refuse(headed.error().message);
  if (const int unused = graph.first_unused(); unused >= 0) {
    const auto at = static_cast<std::size_t>(unused);
    return core::fail(core::Errc::config,
                      fmt::format("{}: no layer and no loss reads it", place_of(at, graph.nodes_[at].name)));
  }
  for (const Head& head : graph.heads_) {
    const auto at = static_cast<std::size_t>(head.node);
    const Node& node = graph.nodes_[at];
    const auto what = at + 1 == graph.nodes_.size() ? ", the last one," : ", which has a loss,";
    if (node.output.height != 1 || node.output.width != 1)
      return core::fail(core::Errc::config,
                        fmt::format("{}{} gives {}, and the loss needs a vector: end with a linear or flatten layer",
                                    place_of(at, node.name), what, to_string(node.output)));
    if (node.output != graph.output())
      return core::fail(core::Errc::config,
                        fmt::format("{}{} has {} outputs, and the last layer {}", place_of(at, node.name), what,
                                    node.output.channels, graph.output().channels));
  }
  return graph;
}

core::Result<Graph> Graph::sequential(std::string name, Shape input, const std::vector<Layer>& layers, Loss loss,
                                      const GraphPlaces& places) {
  std::vector<NodeSpec> nodes;
  for (const Layer& layer : layers) nodes.push_back({.layer = layer});
  return build(std::move(name), input, nodes, loss, {}, places);
}

core::Result<Graph> Graph::of_program(std::string name, const std::vector<GivenTensor>& parameters,
                                      const std::vector<GivenTensor>& statistics) {
  const auto refuse = [&](std::string_view why) {
    return core::fail(core::Errc::config, fmt::format("program \"{}\": {}", name, why));
  };
  if (parameters.empty()) return refuse("it has no parameters to train");
  std::set<std::string_view> names;
  const auto elements = [](const GivenTensor& tensor) {
    std::int64_t size = 1;
    for (const auto extent : tensor.shape)
      size = extent > 0 && size <= kMostElements / extent ? size * extent : kMostElements + 1;
    return size;
  };
  for (const auto* list : {&parameters, &statistics})
    for (const GivenTensor& tensor : *list) {
      if (tensor.name.empty() || !names.insert(tensor.name).second)
        return refuse(fmt::format("two of its tensors are called \"{}\", or one has no name", tensor.name));
      if (elements(tensor) > kMostElements)
        return refuse(fmt::format("tensor \"{}\" has the shape [{}]: extents are 1 or more, and elements at most 2^40",
                                  tensor.name, fmt::join(tensor.shape, ", ")));
    }
  Graph graph;
  graph.name_ = std::move(name);
  graph.program_ = true;
  graph.input_ = {1, 1, 1};
  graph.nodes_.push_back({"program", FlattenLayer{}, {-1}, {1, 1, 1}});
  graph.heads_.push_back({0, 1});
  graph.readers_.emplace_back();
  graph.needs_gradient_.push_back(true);
  graph.evaluated_.push_back(true);
  for (const GivenTensor& tensor : parameters)
    graph.parameters_.push_back(
        {.name = tensor.name, .shape = tensor.shape, .initialiser = {InitialiserKind::constant, 0}});
  for (const GivenTensor& tensor : statistics)
    graph.statistics_.push_back({.name = tensor.name, .channels = elements(tensor), .given = tensor.shape});
  return graph;
}

void Graph::add(Node node, const InferredLayer& inferred) {
  const int index = static_cast<int>(nodes_.size());
  if (!inferred.weight.empty()) {
    parameters_.push_back({node.name + ".weight", inferred.weight, inferred.weight_initialiser, inferred.fan_in,
                           inferred.fan_out, index});
    if (inferred.bias)
      parameters_.push_back({node.name + ".bias",
                             {inferred.weight.front()},
                             {InitialiserKind::constant, 0},
                             inferred.fan_in,
                             inferred.fan_out,
                             index});
  }
  if (inferred.statistics) {
    statistics_.push_back({node.name + ".running_mean", node.output.channels, 0, index});
    statistics_.push_back({node.name + ".running_var", node.output.channels, 1, index});
  }
  const bool behind_parameters = std::ranges::any_of(node.inputs, [this](int from) { return needs_gradient(from); });
  needs_gradient_.push_back(!inferred.weight.empty() || behind_parameters);
  readers_.emplace_back();
  for (const int from : node.inputs)
    if (from >= 0) readers_[static_cast<std::size_t>(from)].push_back(index);
  nodes_.push_back(std::move(node));
}

core::Result<void> Graph::set_heads(const std::vector<AuxiliaryLoss>& auxiliary,
                                    const std::vector<std::string>& names) {
  for (const auto& extra : auxiliary) {
    const auto node = std::ranges::find(nodes_, extra.node, &Node::name);
    if (node == nodes_.end())
      return core::fail(core::Errc::config,
                        fmt::format("an auxiliary loss is on layer \"{}\", which it does not have{}", extra.node,
                                    core::nearest_hint(extra.node, names, core::Quotes::yes)));
    if (!(std::isfinite(extra.weight) && extra.weight >= 0))
      return core::fail(
          core::Errc::config,
          fmt::format("the weight {} of the auxiliary loss on \"{}\" is not a number ≥ 0", extra.weight, extra.node));
    heads_.push_back({static_cast<int>(node - nodes_.begin()), extra.weight});
  }
  heads_.push_back({static_cast<int>(nodes_.size()) - 1, 1});
  std::ranges::stable_sort(heads_, {}, &Head::node);
  const auto twice = std::ranges::adjacent_find(heads_, {}, &Head::node);
  if (twice != heads_.end())
    return core::fail(core::Errc::config,
                      fmt::format("layer \"{}\" has two losses", nodes_[static_cast<std::size_t>(twice->node)].name));

  evaluated_.assign(nodes_.size(), false);
  evaluated_.back() = true;
  for (std::size_t i = nodes_.size(); i-- > 0;)
    if (evaluated_[i])
      for (const int from : nodes_[i].inputs)
        if (from >= 0) evaluated_[static_cast<std::size_t>(from)] = true;
  return {};
}

int Graph::first_unused() const {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
    if (readers(i).empty() && std::ranges::find(heads_, i, &Head::node) == heads_.end()) return i;
  return -1;
}

std::vector<Shape> Graph::inputs_of(const Node& node) const {
  std::vector<Shape> shapes;
  for (const int from : node.inputs)
    shapes.push_back(from < 0 ? input_ : nodes_[static_cast<std::size_t>(from)].output);
  return shapes;
}

std::int64_t Graph::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_) count += parameter.size();
  return count;
}

double Graph::training_flops() const noexcept {
  double flops = 0;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) flops += training_flops(node);
  return flops;
}

double Graph::training_flops(int node) const noexcept {
  if (program_) return 0;  // nothing is known of them
  double flops = 0;
  for (const auto& parameter : parameters_) {
    if (parameter.node != node || parameter.shape.size() < 2) continue;  // biases and normalisation
    const Node& of = nodes_[static_cast<std::size_t>(parameter.node)];
    const bool first = !needs_gradient(of.inputs.front());
    const Shape& output = of.output;
    const double positions = static_cast<double>(output.height) * static_cast<double>(output.width);
    const double forward = 2.0 * static_cast<double>(parameter.size()) * positions;
    flops += forward * (first ? 2 : 3);
  }
  return flops;
}

}  // namespace troupe::nn
