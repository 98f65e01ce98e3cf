// Functions that several layers share: orders, types and sums.
#include "gpu/program/lowering.hpp"

namespace troupe::gpu {
namespace {

Operand transposed(Lowering& lowering, Phase phase, const Operand& from) {
  const TensorShape& s = from.shape;
  Operand to = lowering.program.make(s, from.type);
  to.is_plain = !from.is_plain;
  const std::int64_t pixels = s.height * s.width;
  lowering.program.add_kernel(phase, from.is_plain ? "to channels last" : "to plain order", {from}, {to},
                              [=](const Addresses& at) {
                                const bool plain = from.is_plain;
                                return Transpose{.from = at(from),
                                                 .to = at(to),
                                                 .batch = s.batch,
                                                 .rows = plain ? s.channels : pixels,
                                                 .columns = plain ? pixels : s.channels,
                                                 .type = from.type};
                              });
  return to;
}

/// Tensor cores read this many bytes of channels at a time.
constexpr std::int64_t kChannelBytes = 16;

/// Vectors and single channels are in both orders at once.
bool is_in_order(const Operand& operand, bool plain) { return operand.is_plain == plain || operand.has_one_order(); }

}  // namespace

TensorShape tensor_shape(const Lowering& lowering, const nn::Shape& shape) {
  return {lowering.options.batch, shape.height, shape.width, shape.channels};
}

TensorShape images_shape(const Lowering& lowering, const nn::Shape& shape) {
  TensorShape padded = tensor_shape(lowering, shape);
  const auto step = kChannelBytes / static_cast<std::int64_t>(bytes_of(lowering.type));
  padded.channels = (padded.channels + step - 1) / step * step;
  return padded;
}

Operand cast(Lowering& lowering, Phase phase, const Operand& operand, Type type) {
  if (operand.type == type) return operand;
  Operand to = lowering.program.make(operand.shape, type);
  to.is_plain = operand.is_plain;
  lowering.program.add_kernel(phase, "cast", {operand}, {to}, [=](const Addresses& at) {
    return Cast{at(operand), at(to), operand.type, type, operand.shape.size()};
  });
  return to;
}

Operand padded_images(Lowering& lowering, const Operand& images, std::int64_t channels) {
  if (!images.is_plain) return images;  // they came so
  TensorShape shape = images.shape;
  shape.channels = channels;
  const Operand to = lowering.program.make(shape, lowering.type);
  lowering.program.add_kernel(Phase::forward, "images", {images}, {to}, [=, type = lowering.type](const Addresses& at) {
    return ImagesToNhwc{
        .from = at(images), .to = at(to), .to_shape = shape, .channels = images.shape.channels, .type = type};
  });
  return to;
}

Operand as_image(Lowering& lowering, Phase phase, const Operand& operand, const TensorShape& wanted) {
  if (operand.shape == wanted) {
    const bool is_images = operand.is_plain && operand.type == Type::fp32 && !operand.has_one_order();
    if (is_images) return padded_images(lowering, operand, wanted.channels);
    Operand image = cast(lowering, phase, operand, lowering.type);
    if (!is_in_order(image, false)) image = transposed(lowering, phase, image);
    image.is_plain = false;
    return image;
  }
  Operand vector = as_plain(lowering, phase, operand, lowering.type).viewed_as(wanted);
  vector.is_plain = false;
  return vector;
}

Operand as_plain(Lowering& lowering, Phase phase, const Operand& operand, Type type) {
  Operand plain = operand;
  if (!is_in_order(plain, true)) plain = transposed(lowering, phase, plain);
  plain.is_plain = true;
  return cast(lowering, phase, plain, type);
}

Operand gradient_like(Lowering& lowering, const Operand& gradient, const Operand& of) {
  Operand result = gradient.viewed_as(of.shape);
  if (gradient.shape != of.shape) result.is_plain = true;
  if (!is_in_order(result, of.is_plain)) result = transposed(lowering, Phase::backward, result);
  result.is_plain = of.is_plain;
  return result;
}

Operand target_for(Lowering& lowering, const Operand& gradient) {
  if (!lowering.gradient_is_shared) return gradient;
  Operand target = lowering.program.make(gradient.shape, gradient.type);
  target.is_plain = gradient.is_plain;
  return target;
}

void add_up(Lowering& lowering, Phase phase, const std::vector<Operand>& operands, const Operand& to, bool relu) {
  constexpr std::size_t kMost = std::tuple_size_v<decltype(AddUp::x)>;
  for (std::size_t first = 0; first < operands.size();) {
    std::vector<Operand> terms;
    if (first > 0) terms.push_back(to);  // the sum so far
    while (first < operands.size() && terms.size() < kMost) terms.push_back(operands[first++]);
    const bool last = first == operands.size();
    lowering.program.add_kernel(phase, "sum", terms, {to}, [=](const Addresses& at) {
      AddUp kernel{.inputs = static_cast<int>(terms.size()),
                   .y = at(to),
                   .relu = relu && last,
                   .count = to.shape.size(),
                   .type = to.type};
      for (std::size_t i = 0; i < terms.size(); ++i) kernel.x[i] = at(terms[i]);
      return kernel;
    });
  }
}

Operand add_activation_backward(Lowering& lowering, nn::Activation activation, const Operand& y, const Operand& dy) {
  const Operand dz = target_for(lowering, dy);
  lowering.program.add_kernel(Phase::backward, "activation backward", {y, dy}, {dz}, [=](const Addresses& at) {
    return ActivationBackward{activation, at(y), at(dy), at(dz), y.shape.size(), y.type};
  });
  return dz;
}

void add_column_sums(Lowering& lowering, const Operand& dz, std::int64_t columns, const Operand& sums) {
  const std::int64_t rows = dz.shape.size() / columns;
  const Operand scratch = lowering.program.make_floats(static_cast<std::int64_t>(column_sums_scratch(rows, columns)));
  lowering.program.add_kernel(
      Phase::backward, "bias gradient", {dz, scratch}, {sums, scratch},
      [=](const Addresses& at) { return ColumnSums{at(dz), at(sums), at(scratch), rows, columns, dz.type}; });
}

const nn::Node& node_of(const Lowering& lowering, const LayerContext& context) {
  return lowering.graph.nodes()[static_cast<std::size_t>(context.node)];
}

}  // namespace troupe::gpu
