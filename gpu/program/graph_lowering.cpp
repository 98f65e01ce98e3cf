#include "gpu/program/graph_lowering.hpp"

#include <algorithm>
#include <stdexcept>

#include "nn/program/structure.hpp"

namespace troupe::gpu {
namespace {

bool is_batch_norm(const nn::Graph& graph, int node) {
  return std::holds_alternative<nn::BatchNormLayer>(nn::node_at(graph, node).layer);
}

/// The batch norm of which the sum of two in node `sum` is the only reader: the two are one pass over memory. -1: none.
int norm_in_front(const nn::Graph& graph, int sum) {
  const nn::Node& node = nn::node_at(graph, sum);
  if (!std::holds_alternative<nn::AddLayer>(node.layer) || node.inputs.size() != 2) return -1;
  for (const int input : node.inputs)
    if (input >= 0 && is_batch_norm(graph, input) && nn::only_reader(graph, input) == sum) return input;
  return -1;
}

Operand part_of(const Operand& whole, std::size_t offset) {
  Operand part = whole;
  part.offset = offset;
  return part;
}

}  // namespace

GraphLowering::GraphLowering(Lowering& lowering)
    : lowering_(lowering), graph_(lowering.graph), values_(graph_.nodes().size()) {
  for (int i = 0; i < static_cast<int>(values_.size()); ++i)
    if (const int norm = norm_in_front(graph_, i); norm >= 0) {
      norm_of_sum_[i] = norm;
      sum_of_norm_[norm] = i;
    }
}

StepOperands GraphLowering::run() {
  ProgramBuilder& program = lowering_.program;
  operands_.images = make_images();
  const auto batch = static_cast<std::size_t>(lowering_.options.batch);
  operands_.input = program.make_bytes(kLabelsOffset + batch * sizeof(std::int32_t), Life::from_start);
  if (lowering_.type == Type::fp16) program.keep_to_end(operands_.input);  // gradients are unscaled after the step
  operands_.sums = program.make_bytes(graph_.heads().size() * sizeof(LossSums), Life::to_end);

  for (int i = 0; i < static_cast<int>(values_.size()); ++i) {
    if (value(i).output || sum_of_norm_.contains(i)) continue;
    if (const auto norm = norm_of_sum_.find(i); norm != norm_of_sum_.end())
      lower_normalised_sum(i, norm->second);
    else
      lower_node(i);
  }
  for (std::size_t i = 0; i < graph_.heads().size(); ++i) add_head(graph_.heads()[i], i);
  program.add_forward_for(When::always);
  if (!lowering_.options.training) return operands_;
  for (std::size_t i = 0; i < graph_.heads().size(); ++i) {
    at(graph_.heads()[i].node);
    give(node_, loss_gradients_[i]());
  }
  for (std::size_t i = parts_.size(); i-- > 0;) {
    at(parts_[i].node);
    add_backward(parts_[i]);
  }
  return operands_;
}

/// If only convolutions read the images, they come as those want them: one pass over memory less.
Operand GraphLowering::make_images() {
  const bool convolved = std::ranges::all_of(graph_.nodes(), [](const nn::Node& node) {
    const auto* convolution = std::get_if<nn::Conv2dLayer>(&node.layer);
    return std::ranges::count(node.inputs, -1) == 0 || (convolution && convolution->groups == 1);
  });
  if (convolved)
    return lowering_.program.make(images_shape(lowering_, graph_.input()), lowering_.type, Life::from_start);
  Operand plain = lowering_.program.make(tensor_shape(lowering_, graph_.input()), Type::fp32, Life::from_start);
  plain.is_plain = true;
  return plain;
}

void GraphLowering::at(int node) {
  node_ = node;
  lowering_.program.at_node(node, nn::node_at(graph_, node).name);
  lowering_.program.add_forward_for(graph_.is_evaluated(node) ? When::always : When::training);
}

Operand GraphLowering::value_of(int node) const {
  return node < 0 ? operands_.images : values_[static_cast<std::size_t>(node)].output;
}

LayerContext GraphLowering::context_of(int node, int last) const {
  const nn::Node& layer = nn::node_at(graph_, node);
  const int input = layer.inputs.front();
  return {.node = node,
          .input = value_of(input),
          .input_shape = graph_.inputs_of(layer).front(),
          .output_shape = layer.output,
          .first_parameter = nn::first_of(graph_.parameters(), node),
          .first_statistic = nn::first_of(graph_.statistics(), node),
          .input_gradient = graph_.needs_gradient(input),
          .activation = {},
          .is_output = nn::is_head(graph_, last) && graph_.readers(last).empty(),
          .is_normalised =
              std::ranges::any_of(graph_.readers(node), [&](int reader) { return is_batch_norm(graph_, reader); }),
          .sums = input < 0 ? ChannelSums{} : values_[static_cast<std::size_t>(input)].sums};
}

void GraphLowering::lower_node(int node) {
  at(node);
  const nn::Node& layer = nn::node_at(graph_, node);
  const int fused = nn::activation_behind(graph_, node);
  const int last = fused < 0 ? node : fused;
  LayerContext context = context_of(node, last);
  if (fused >= 0) context.activation = std::get<nn::ActivationLayer>(nn::node_at(graph_, fused).layer).kind;
  finish({node, layer.inputs, last}, lower_layer(context, layer.layer));
}

void GraphLowering::lower_normalised_sum(int sum, int norm) {
  at(norm);
  const auto& terms = nn::node_at(graph_, sum).inputs;
  const int other = terms[0] == norm ? terms[1] : terms[0];
  const int fused = nn::activation_behind(graph_, sum);
  LayerContext context = context_of(norm, norm);
  if (fused >= 0) context.activation = std::get<nn::ActivationLayer>(nn::node_at(graph_, fused).layer).kind;
  const auto& layer = std::get<nn::BatchNormLayer>(nn::node_at(graph_, norm).layer);
  finish({norm, {nn::node_at(graph_, norm).inputs.front(), other}, fused < 0 ? sum : fused},
         lower_batch_norm(lowering_, context, layer, value_of(other)));
}

Lowered GraphLowering::lower_layer(const LayerContext& context, const nn::Layer& layer) {
  struct Visitor {
    GraphLowering& self;
    const LayerContext& context;
    [[nodiscard]] std::vector<Operand> inputs() const {
      std::vector<Operand> all;
      for (const int from : nn::node_at(self.graph_, context.node).inputs) all.push_back(self.value_of(from));
      return all;
    }
    Lowered operator()(const nn::LinearLayer& l) const { return lower_linear(self.lowering_, context, l); }
    Lowered operator()(const nn::Conv2dLayer& l) const { return lower_convolution(self.lowering_, context, l); }
    Lowered operator()(const nn::PoolLayer& l) const { return lower_pooling(self.lowering_, context, l); }
    Lowered operator()(const nn::ActivationLayer& l) const { return lower_activation(self.lowering_, context, l.kind); }
    Lowered operator()(const nn::DropoutLayer& l) const {
      return lower_dropout(self.lowering_, context, l, part_of(self.operands_.input, offsetof(StepInput, key)));
    }
    Lowered operator()(const nn::FlattenLayer&) const {  // a layer that needs a vector puts it in plain order
      return {context.input, [](const Operand& gradient) { return std::vector{gradient}; }};
    }
    Lowered operator()(const nn::LrnLayer& l) const { return lower_lrn(self.lowering_, context, l); }
    Lowered operator()(const nn::BatchNormLayer& l) const { return lower_batch_norm(self.lowering_, context, l, {}); }
    Lowered operator()(const nn::AdaptiveAveragePoolLayer&) const {
      return lower_adaptive_pooling(self.lowering_, context);
    }
    Lowered operator()(const nn::AddLayer&) const { return lower_add(self.lowering_, context, inputs()); }
    Lowered operator()(const nn::ConcatLayer&) const { return lower_concat(self.lowering_, context, inputs()); }
  };
  return std::visit(Visitor{*this, context}, layer);
}

/// The value of all nodes from the first to the last of the part: only the last one's is read from outside.
void GraphLowering::finish(Part part, Lowered lowered) {
  part.backward = std::move(lowered.backward);
  for (int i = part.node;; i = graph_.readers(i).front()) {
    value(i).output = lowered.output;
    value(i).gradient_type = lowered.gradient_type;
    value(i).sums = lowered.sums;
    if (i == part.last) break;
  }
  parts_.push_back(std::move(part));
}

void GraphLowering::add_head(const nn::Head& head, std::size_t index) {
  at(head.node);
  const Value& of = value(head.node);
  const LossInputs inputs{.value = of.output,
                          .labels = part_of(operands_.input, kLabelsOffset),
                          .samples = part_of(operands_.input, offsetof(StepInput, samples)),
                          .sums = part_of(operands_.sums, index * sizeof(LossSums)),
                          .loss_scale = lowering_.type == Type::fp16
                                            ? part_of(operands_.input, offsetof(StepInput, loss_scale))
                                            : Operand{},
                          .weight = head.weight,
                          .gradient_type = of.gradient_type.value_or(of.output.type)};
  LoweredLoss loss = lower_loss(lowering_, inputs);
  loss_gradients_.push_back(std::move(loss.gradient));
  operands_.outputs = loss.outputs;
  if (index + 1 == graph_.heads().size()) lowering_.program.keep_to_end(loss.outputs);
}

void GraphLowering::give(int node, const Operand& gradient) {
  if (!gradient || !graph_.needs_gradient(node)) return;
  value(node).gradients.push_back(gradient);
  ++pending_[gradient.index];
}

/// The sum of the gradients that the readers of a value gave.
Operand GraphLowering::take_gradient(Value& of) {
  for (const Operand& gradient : of.gradients) --pending_[gradient.index];
  const Operand first = of.gradients.front();
  lowering_.gradient_is_shared = pending_[first.index] > 0;
  if (of.gradients.size() == 1) return first;
  const bool free =
      !lowering_.gradient_is_shared && std::ranges::count(of.gradients, first.index, &Operand::index) == 1;
  Operand sum = first;
  if (!free) {
    sum = lowering_.program.make(first.shape, first.type);
    sum.is_plain = first.is_plain;
  }
  add_up(lowering_, Phase::backward, of.gradients, sum);
  lowering_.gradient_is_shared = false;
  return sum;
}

void GraphLowering::add_backward(const Part& part) {
  Value& of = value(part.last);
  if (of.gradients.empty()) return;
  const auto gradients = part.backward(take_gradient(of));
  for (std::size_t i = 0; i < gradients.size(); ++i) give(part.inputs[i], gradients[i]);
}

}  // namespace troupe::gpu
