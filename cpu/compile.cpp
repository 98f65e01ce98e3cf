#include "cpu/compile.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/program/lowering.hpp"
#include "nn/initialise.hpp"

namespace troupe::cpu {
namespace {

/// Smaller exchanges cost more to start than they save.
constexpr std::size_t kBucketFloats = (std::size_t{256} << 10) / sizeof(float);

/// Limit of a layer's values for a whole batch: products of sizes stay far below the overflow of int64.
constexpr std::int64_t kMostValues = std::int64_t{1} << 45;

/// The activation directly after node `i`, if that node can be fused with it: matrix products with any, batch normalisation with
/// relu.
std::optional<nn::Activation> activation_behind(const std::vector<nn::Node>& nodes, std::size_t i) {
  if (i + 1 == nodes.size()) return std::nullopt;
  const auto* next = std::get_if<nn::ActivationLayer>(&nodes[i + 1].layer);
  if (next == nullptr) return std::nullopt;
  const nn::Layer& layer = nodes[i].layer;
  const bool product = std::holds_alternative<nn::LinearLayer>(layer) || std::holds_alternative<nn::Conv2dLayer>(layer);
  const bool normalised_relu = std::holds_alternative<nn::BatchNormLayer>(layer) && next->kind == nn::Activation::relu;
  return product || normalised_relu ? std::optional(next->kind) : std::nullopt;
}

/// The index of a pooling after convolution `i` and its fused activation; 0 if there is none.
std::size_t pooling_behind(const std::vector<nn::Node>& nodes, std::size_t i, bool activation) {
  const std::size_t next = i + (activation ? 2 : 1);
  if (!std::holds_alternative<nn::Conv2dLayer>(nodes[i].layer) || next >= nodes.size()) return 0;
  return std::holds_alternative<nn::PoolLayer>(nodes[next].layer) ? next : 0;
}

/// The number of these that belong to node `i`.
template <class Tensors>
int count_of(const Tensors& tensors, std::size_t i) {
  return static_cast<int>(
      std::ranges::count_if(tensors, [&](const auto& tensor) { return tensor.node == static_cast<int>(i); }));
}

Lowered lower(Lowering& lowering, const LayerContext& context, const nn::Layer& layer) {
  struct Visitor {
    Lowering& lowering;
    const LayerContext& context;
    Lowered operator()(const nn::LinearLayer& l) const { return lower_linear(lowering, context, l); }
    Lowered operator()(const nn::Conv2dLayer& l) const { return lower_convolution(lowering, context, l); }
    Lowered operator()(const nn::PoolLayer& l) const { return lower_pooling(lowering, context, l); }
    Lowered operator()(const nn::ActivationLayer& l) const { return lower_activation(lowering, context, l.kind); }
    Lowered operator()(const nn::DropoutLayer& l) const { return lower_dropout(lowering, context, l); }
    Lowered operator()(const nn::FlattenLayer&) const {  // a layer that needs a vector converts to one
      return {context.input, [](const Operand& gradient) { return gradient; }};
    }
    Lowered operator()(const nn::LrnLayer& l) const { return lower_lrn(lowering, context, l); }
    Lowered operator()(const nn::BatchNormLayer& l) const { return lower_batch_norm(lowering, context, l); }
  };
  return std::visit(Visitor{lowering, context}, layer);
}

/// Lowers all nodes of the chain and the loss. `node` is the present node, for messages.
void lower_all(Lowering& lowering, std::size_t& node) {
  const auto& nodes = lowering.graph.nodes();
  nn::Shape shape = lowering.graph.input();
  Operand value{Place::input, 0, plain_desc(spatial_dims(lowering, shape))};
  std::vector<Backward> backwards;
  std::vector<std::size_t> backward_nodes;
  int parameter = 0;
  int statistic = 0;
  for (node = 0; node < nodes.size(); ++node) {
    LayerContext context{static_cast<int>(node),        value, shape, parameter, statistic, parameter > 0,
                         activation_behind(nodes, node)};
    const std::size_t pool = pooling_behind(nodes, node, context.activation.has_value());
    std::optional<Lowered> pooled;
    if (pool > 0)
      pooled = lower_pooled_convolution(lowering, context, std::get<nn::Conv2dLayer>(nodes[node].layer),
                                        static_cast<int>(pool));
    Lowered lowered = pooled ? std::move(*pooled) : lower(lowering, context, nodes[node].layer);
    value = lowered.output;
    backwards.push_back(std::move(lowered.backward));
    backward_nodes.push_back(node);
    parameter += count_of(lowering.graph.parameters(), node);
    statistic += count_of(lowering.graph.statistics(), node);
    if (pooled)
      node = pool;
    else if (context.activation)
      ++node;  // it is fused with the node before
    shape = nodes[node].output;
  }
  --node;
  const auto plain = plain_desc({lowering.options.batch, shape.size()});
  const Operand outputs = owned(lowering, lowering.program.convert(Phase::forward, value, plain));
  Operand gradient = lowering.program.make(plain);
  lowering.program.set_loss(outputs, gradient);
  if (!lowering.options.training) return;
  for (std::size_t i = backwards.size(); i-- > 0 && gradient;) {
    node = backward_nodes[i];
    gradient = backwards[i](gradient);
  }
}

core::Result<void> check(const nn::Graph& graph, const nn::CompileOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("model {} on the cpu: {}", graph.name(), why));
  };
  if (options.precision != nn::Precision::fp32)
    return refuse("precision bf16 is not available: use precision = \"fp32\"");
  if (options.device != 0) return refuse(fmt::format("there is no device {}: use 0", options.device));
  if (options.batch < 1) return refuse(fmt::format("batch {} is below 1", options.batch));
  if (options.threads < 1) return refuse(fmt::format("threads {} is below 1", options.threads));
  if (options.arenas == nullptr) return refuse("no allocator for the arenas was given");
  if (options.arenas->space() == core::MemorySpace::device) return refuse("its arenas cannot live in device memory");
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const nn::Node& node = graph.nodes()[i];
    if (node.inputs != std::vector<int>{static_cast<int>(i) - 1})
      return refuse(fmt::format("layer {} does not take just the output of the layer before it", node.name));
    if (options.batch > kMostValues / std::max<std::int64_t>(node.output.size(), graph.input().size()))
      return core::fail(core::Errc::out_of_memory,
                        fmt::format("layer {} of {} with batch {} has more values than there are addresses: use a "
                                    "smaller batch or a smaller model",
                                    node.name, graph.name(), options.batch));
    const bool one_value = options.batch * node.output.height * node.output.width == 1;
    if (std::holds_alternative<nn::BatchNormLayer>(node.layer) && options.training && one_value)
      return refuse(fmt::format(
          "layer {} has one value per channel in a batch of 1, which has no variance: use a batch of 2 or more",
          node.name));
  }
  return {};
}

}  // namespace

std::vector<nn::Bucket> cut_buckets(const nn::Graph& graph, const nn::Layout& layout, std::size_t floats,
                                    std::vector<Operation>& backward) {
  const auto& parameters = graph.parameters();
  std::vector<nn::Bucket> buckets;
  std::size_t end = layout.arena_floats();
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const bool first_of_node = i == 0 || parameters[i - 1].node != parameters[i].node;
    const auto offset = static_cast<std::size_t>(layout.tensors()[i].offset);
    if (!first_of_node || (i > 0 && end - offset < floats)) continue;
    for (Operation& operation : backward)
      if (operation.finished_node == parameters[i].node) operation.finished_bucket = static_cast<int>(buckets.size());
    buckets.push_back({offset, end - offset});
    end = offset;
  }
  return buckets;
}

core::Result<Compiled> compile(const nn::Graph& graph, const nn::CompileOptions& options) {
  if (auto checked = check(graph, options); !checked) return tl::unexpected(std::move(checked.error()));
  core::Result<Choices> choices = options.plan == nullptr ? Choices::by_rule(graph) : Choices::from_plan(*options.plan);
  if (!choices) return tl::unexpected(std::move(choices.error()));

  std::size_t node = 0;
  try {
    Compiled result;
    result.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    ProgramBuilder builder(result.engine, graph.parameters().size());
    Lowering lowering{graph, options, result.engine, builder, *choices};
    lower_all(lowering, node);

    result.layout = std::make_shared<const nn::Layout>(builder.arena_layout(graph.parameters()));
    const nn::Layout statistics = nn::statistics_layout(graph);
    const auto arena = [&](core::Buffer& buffer, const nn::Layout& layout, const char* what) -> core::Result<void> {
      auto allocated =
          core::Buffer::allocate(*options.arenas, layout.arena_floats(), fmt::format("{} of {}", what, graph.name()));
      if (!allocated) return tl::unexpected(std::move(allocated.error()));
      buffer = std::move(*allocated);
      return {};
    };
    if (auto made = arena(result.parameters, *result.layout, "parameters"); !made)
      return tl::unexpected(std::move(made.error()));
    if (options.training)
      if (auto made = arena(result.gradients, *result.layout, "gradients"); !made)
        return tl::unexpected(std::move(made.error()));
    if (statistics.arena_floats() > 0) {
      if (auto made = arena(result.statistics, statistics, "statistics"); !made)
        return tl::unexpected(std::move(made.error()));
      nn::initialise_statistics(graph, result.statistics.view());
    }
    auto program = std::move(builder).build(
        {*result.layout, statistics, result.parameters.data(), result.gradients.data(), result.statistics.data()});
    if (!program) return tl::unexpected(std::move(program.error()));
    result.program = std::move(*program);
    if (options.training) result.buckets = cut_buckets(graph, *result.layout, kBucketFloats, result.program.backward);
    result.plan = choices->to_plan();
    return result;
  } catch (const NoSuchImplementation& missing) {
    return core::fail(core::Errc::config,
                      fmt::format("{}this CPU or oneDNN has no {} for layer {} of {}", nn::kPlanRefused,
                                  missing.implementation, graph.nodes()[node].name, graph.name()));
  } catch (const dnnl::error& error) {
    const auto code = error.status == dnnl_out_of_memory ? core::Errc::out_of_memory : core::Errc::config;
    return core::fail(code, fmt::format("oneDNN cannot compute layer {} of {} with batch {}: {}",
                                        graph.nodes()[node].name, graph.name(), options.batch, error.what()));
  }
}

}  // namespace troupe::cpu
