// Fully connected layers as matrix products on canonical weights [outputs, inputs]: images in front of them are put in plain order, which
// costs a pass over the activation, little beside the weights.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {
namespace {

void add_product(Lowering& lowering, Phase phase, const Choice<MatrixPlan>& choice, const MatrixProduct& description,
                 const Operand& a, const Operand& b, const Operand& d, const Operand& bias) {
  const Operand workspace = lowering.program.make_bytes(choice.plan->workspace());
  std::vector<Operand> reads{a, b};
  if (bias) reads.push_back(bias);
  lowering.program.add(
      phase,
      {to_string(description), std::move(reads), {d, workspace}, [=, plan = choice.plan](const Addresses& at) -> Work {
         return MatrixWork{plan, {at(a), at(b), at(d), at(bias)}, at(workspace).address};
       }});
}

}  // namespace

Lowered lower_linear(Lowering& lowering, const LayerContext& context, const nn::LinearLayer& layer) {
  ProgramBuilder& program = lowering.program;
  const std::int64_t batch = lowering.options.batch;
  const std::int64_t inputs = context.input_shape.size();
  const std::int64_t outputs = layer.outputs;
  const int weight = context.first_parameter;
  const int bias = weight + 1;
  const Type type = lowering.type;
  program.set_parameter_layout(weight, {inputs, 1}, outputs * inputs);
  program.set_parameter_layout(bias, {1}, outputs);

  // y [batch, outputs] = f(x [batch, inputs] · wᵀ [inputs, outputs] + b)
  const Operand x = as_plain(lowering, Phase::forward, context.input, type);
  const Operand y = program.make({.batch = batch, .channels = outputs}, context.is_output ? Type::fp32 : type);
  const MatrixProduct common{.type = type, .math = lowering.math, .deterministic = lowering.options.deterministic};
  MatrixProduct forward = common;
  forward.m = batch;
  forward.n = outputs;
  forward.k = inputs;
  forward.transpose_b = true;
  forward.output = y.type;
  forward.bias = true;
  std::vector<MatrixProduct> descriptions{forward};
  if (y.type != type) {  // a library may add no bias of another type than the factors'
    descriptions.push_back(forward);
    descriptions.back().output = type;
  }
  const auto choice = lowering.choices.choose(descriptions);
  forward = descriptions[choice.description];
  const Operand product = forward.output == y.type ? y : program.make(y.shape, forward.output);
  const Operand b = product.type == Type::fp32 ? program.parameter(bias) : program.working(bias);
  add_product(lowering, Phase::forward, choice, forward, x, program.working(weight), product, b);
  if (product.type != y.type)
    program.add_kernel(Phase::forward, "cast", {product}, {y}, [=](const Addresses& at) {
      return Cast{at(product), at(y), product.type, y.type, y.shape.size()};
    });
  if (context.activation)
    program.add_kernel(Phase::forward, "activation", {y}, {y}, [=, f = *context.activation](const Addresses& at) {
      return ActivationForward{f, at(y), at(y), y.shape.size(), y.type};
    });
  if (!lowering.options.training) return {y};

  const auto backward = [=, &lowering, &program](const Operand& output_gradient) -> std::vector<Operand> {
    Operand dz = output_gradient;
    if (context.activation) dz = add_activation_backward(lowering, *context.activation, y, dz);
    add_column_sums(lowering, dz, outputs, program.gradient(bias));
    dz = cast(lowering, Phase::backward, dz, type);
    // dw [outputs, inputs] = dzᵀ [outputs, batch] · x [batch, inputs]
    MatrixProduct weights = common;
    weights.m = outputs;
    weights.n = inputs;
    weights.k = batch;
    weights.transpose_a = true;
    weights.output = Type::fp32;
    add_product(lowering, Phase::backward, lowering.choices.choose({weights}), weights, dz, x, program.gradient(weight),
                {});
    lowering.program.finish_node(context.node);
    if (!context.input_gradient) return {Operand{}};
    // dx [batch, inputs] = dz [batch, outputs] · w [outputs, inputs]
    MatrixProduct data = common;
    data.m = batch;
    data.n = inputs;
    data.k = outputs;
    data.output = type;
    Operand dx = program.make(x.shape, type);
    dx.is_plain = true;
    add_product(lowering, Phase::backward, lowering.choices.choose({data}), data, dz, program.working(weight), dx, {});
    return {gradient_like(lowering, dx, context.input)};
  };
  return {y, backward, context.activation ? y.type : type};
}

}  // namespace troupe::gpu
