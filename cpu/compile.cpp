#include "cpu/compile.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "cpu/program/lowering.hpp"
#include "nn/initialise.hpp"
#include "nn/program/buckets.hpp"
#include "nn/program/options.hpp"
#include "nn/program/structure.hpp"

namespace troupe::cpu {
namespace {

/// The node of a pooling that alone reads convolution `i`, or the activation `fused` with it; -1: none.
int pooling_behind(const nn::Graph& graph, int i, int fused) {
  if (!std::holds_alternative<nn::Conv2dLayer>(nn::node_at(graph, i).layer)) return -1;
  const int next = nn::only_reader(graph, fused < 0 ? i : fused);
  return next >= 0 && std::holds_alternative<nn::PoolLayer>(nn::node_at(graph, next).layer) ? next : -1;
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
    Lowered operator()(const nn::AdaptiveAveragePoolLayer& l) const {
      return lower_adaptive_pooling(lowering, context, l);
    }
    Lowered operator()(const nn::AddLayer&) const { throw std::logic_error("add has several inputs"); }
    Lowered operator()(const nn::ConcatLayer&) const { throw std::logic_error("concat has several inputs"); }
  };
  return std::visit(Visitor{lowering, context}, layer);
}

/// Lowers a graph: forward in its order, the losses, then backward in the reverse order.
class GraphLowering {
 public:
  /// `node`: the one that is lowered at present, for messages.
  GraphLowering(Lowering& lowering, std::size_t& node)
      : lowering_(lowering), graph_(lowering.graph), node_(node), values_(graph_.nodes().size()) {}

  void run() {
    for (node_ = 0; node_ < values_.size(); ++node_) {
      lowering_.program.at_node(static_cast<int>(node_));
      if (!values_[node_].output) lower_node(static_cast<int>(node_));
    }
    lowering_.program.add_forward_for(When::always);
    for (const nn::Head& head : graph_.heads()) add_head(head);
    if (!lowering_.options.training) return;
    for (std::size_t i = parts_.size(); i-- > 0;) {
      node_ = static_cast<std::size_t>(parts_[i].node);
      lowering_.program.at_node(parts_[i].node);
      add_backward(parts_[i]);
    }
  }

 private:
  struct Value {
    Operand output;
    std::vector<Operand> gradients;  // one from each reader and loss
  };
  /// Nodes that are lowered together.
  struct Part {
    int node = 0;             // the first, which has the inputs
    std::vector<int> inputs;  // of `node`
    int last = 0;             // the node whose value leaves the part
    JoinBackward backward;
  };

  [[nodiscard]] Operand value_of(int node) {
    if (node >= 0) return values_[static_cast<std::size_t>(node)].output;
    return {Place::input, 0, plain_desc(spatial_dims(lowering_, graph_.input()))};
  }

  void lower_node(int index) {
    const nn::Node& node = nn::node_at(graph_, index);
    lowering_.program.add_forward_for(graph_.is_evaluated(index) ? When::always : When::training);
    const int fused = nn::activation_behind(graph_, index);
    LayerContext context{.node = index,
                         .input = value_of(node.inputs.front()),
                         .input_shape = graph_.inputs_of(node).front(),
                         .first_parameter = parameter_,
                         .first_statistic = statistic_,
                         .input_gradient = graph_.needs_gradient(node.inputs.front()),
                         .activation = {}};
    if (fused >= 0) context.activation = std::get<nn::ActivationLayer>(nn::node_at(graph_, fused).layer).kind;
    Part part{index, node.inputs, fused < 0 ? index : fused, {}};
    if (node.inputs.size() > 1) {
      std::vector<Operand> inputs;
      for (const int from : node.inputs) inputs.push_back(owned(lowering_, value_of(from)));
      auto joined = std::holds_alternative<nn::AddLayer>(node.layer) ? lower_add(lowering_, context, inputs)
                                                                     : lower_concat(lowering_, context, inputs);
      set_value(part, joined.output);
      part.backward = std::move(joined.backward);
    } else {
      std::optional<Lowered> lowered;
      if (const int pool = pooling_behind(graph_, index, fused); pool >= 0) {
        lowered = lower_pooled_convolution(lowering_, context, std::get<nn::Conv2dLayer>(node.layer), pool);
        if (lowered) part.last = pool;
      }
      if (!lowered) lowered = lower(lowering_, context, node.layer);
      set_value(part, lowered->output);
      if (lowered->backward)
        part.backward = [backward = std::move(lowered->backward)](const Operand& gradient) {
          return std::vector{backward(gradient)};
        };
    }
    parameter_ += nn::count_of(graph_.parameters(), index);
    statistic_ += nn::count_of(graph_.statistics(), index);
    parts_.push_back(std::move(part));
  }

  /// The value of all nodes from the first to the last of the part: only the last one's is read from outside.
  void set_value(const Part& part, const Operand& output) {
    for (int at = part.node;; at = graph_.readers(at).front()) {
      values_[static_cast<std::size_t>(at)].output = output;
      if (at == part.last) return;
    }
  }

  void add_head(const nn::Head& head) {
    const auto plain = plain_desc({lowering_.options.batch, nn::node_at(graph_, head.node).output.size()});
    lowering_.program.add_forward_for(graph_.is_evaluated(head.node) ? When::always : When::training);
    lowering_.program.at_node(head.node);
    const Operand outputs = owned(lowering_, lowering_.program.convert(Phase::forward, value_of(head.node), plain));
    const Operand gradient = lowering_.program.make(plain);
    lowering_.program.add_head(outputs, gradient, head.weight);
    give(head.node, gradient);
  }

  void give(int node, const Operand& gradient) {
    if (!gradient || !graph_.needs_gradient(node)) return;
    values_[static_cast<std::size_t>(node)].gradients.push_back(gradient);
    ++pending_[gradient.index];
  }

  /// The sum of the gradients that the readers of a value gave.
  [[nodiscard]] Operand take_gradient(Value& value) {
    for (const Operand& gradient : value.gradients) --pending_[gradient.index];
    Operand first = value.gradients.front();
    lowering_.gradient_is_shared = pending_[first.index] > 0;
    if (value.gradients.size() == 1) return first;
    std::vector<Operand> all;
    for (const Operand& gradient : value.gradients)
      all.push_back(lowering_.program.convert(Phase::backward, gradient, first.desc));
    const bool free = !lowering_.gradient_is_shared && std::ranges::count(all, first.index, &Operand::index) == 1;
    const Operand sum = free ? first : lowering_.program.make(first.desc);
    add_up(lowering_, Phase::backward, all, sum);
    lowering_.gradient_is_shared = false;
    return sum;
  }

  void add_backward(const Part& part) {
    Value& value = values_[static_cast<std::size_t>(part.last)];
    if (value.gradients.empty()) return;
    const Operand gradient = take_gradient(value);
    const auto gradients = part.backward(gradient);
    for (std::size_t i = 0; i < gradients.size(); ++i) give(part.inputs[i], gradients[i]);
  }

  Lowering& lowering_;
  const nn::Graph& graph_;
  std::size_t& node_;
  std::vector<Value> values_;
  std::vector<Part> parts_;
  std::map<int, int> pending_;  // by slot: the gradients that no backward has taken yet
  int parameter_ = 0;
  int statistic_ = 0;
};

}  // namespace

bool computes_bf16() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  constexpr auto kAvx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (isa & kAvx512) == kAvx512;
}

core::Result<void> check_options(const nn::Graph& graph, const nn::CompileOptions& options) {
  const auto refuse = [&](const std::string& why) { return nn::refuse(graph, "the cpu", why); };
  if (options.precision == nn::Precision::bf16 && !computes_bf16())
    return refuse("this CPU has no AVX-512, which precision bf16 needs: use precision = \"fp32\"");
  if (options.precision == nn::Precision::tf32)
    return refuse("this CPU has no products of tf32: use precision = \"fp32\"");
  if (options.precision == nn::Precision::fp16)
    return refuse("it does not compute in fp16: use precision = \"fp32\" or \"bf16\"");
  if (options.device != 0) return refuse(fmt::format("there is no device {}: use 0", options.device));
  if (options.arenas != nullptr && options.arenas->space() == core::MemorySpace::device)
    return refuse("its arenas cannot live in device memory");
  return nn::check_options(graph, options, "the cpu");
}

core::Result<Compiled> compile(const nn::Graph& graph, const nn::CompileOptions& options) {
  if (auto checked = check_options(graph, options); !checked) return tl::unexpected(std::move(checked.error()));
  core::Result<Choices> choices = options.plan == nullptr ? Choices::by_rule(graph, options.precision)
                                                          : Choices::from_plan(*options.plan, options.precision);
  if (!choices) return tl::unexpected(std::move(choices.error()));

  std::size_t node = 0;
  try {
    Compiled result;
    result.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    ProgramBuilder builder(result.engine, graph.parameters().size(), options.canonical_arenas);
    {
      Trials trials(result.engine);  // its memory is free again before the workspace is allocated
      using Type = dnnl::memory::data_type;
      const Type type = options.precision == nn::Precision::bf16 ? Type::bf16 : Type::f32;
      Lowering lowering{graph, options, result.engine, builder, *choices, trials, type};
      GraphLowering(lowering, node).run();
    }

    result.layout = std::make_shared<const nn::Layout>(
        options.canonical_arenas ? nn::plain_layout(graph) : builder.arena_layout(graph.parameters()));
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
        {*result.layout, statistics, result.parameters.data(), result.gradients.data(), result.statistics.data()},
        options.recompute);
    if (!program) return tl::unexpected(std::move(program.error()));
    result.program = std::move(*program);
    if (options.training) {
      auto cut = nn::cut_buckets(graph, *result.layout, nn::kBucketFloats);
      for (Operation& operation : result.program.backward)
        if (const auto last = std::ranges::find(cut.last_nodes, operation.finished_node); last != cut.last_nodes.end())
          operation.finished_bucket = static_cast<int>(last - cut.last_nodes.begin());
      result.buckets = std::move(cut.buckets);
    }
    result.plan = choices->to_plan();
    return result;
  } catch (const NoSuchImplementation& missing) {
    return core::fail(core::Errc::config,
                      fmt::format("{}this CPU or oneDNN has no {} for layer {} of {}", nn::kPlanRefused,
                                  missing.implementation, graph.nodes()[node].name, graph.name()));
  } catch (const dnnl::error& error) {
    const auto code = error.status == dnnl_out_of_memory ? core::Errc::out_of_memory : core::Errc::config;
    // An algorithm that only the plan wants: without a plan, choices are made among what oneDNN has.
    const bool by_plan = options.plan != nullptr && error.status == dnnl_unimplemented;
    return core::fail(code, fmt::format("{}oneDNN cannot compute layer {} of {} with batch {}: {}",
                                        by_plan ? nn::kPlanRefused : std::string_view(), graph.nodes()[node].name,
                                        graph.name(), options.batch, error.what()));
  }
}

}  // namespace troupe::cpu
