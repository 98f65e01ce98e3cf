#include "gpu/program/sampled_convolution.hpp"

namespace troupe::gpu {
namespace {

/// Of an element of a tensor [batch, height, width, channels].
struct Coordinates {
  std::int64_t sample, row, column, channel;
};

Coordinates coordinates_in(const TensorShape& shape, std::int64_t index) {
  const std::int64_t pixel = index / shape.channels;
  return {pixel / (shape.height * shape.width), pixel / shape.width % shape.height, pixel % shape.width,
          index % shape.channels};
}

/// −1: outside.
std::int64_t index_in(const TensorShape& shape, const Coordinates& at) {
  if (at.row < 0 || at.row >= shape.height || at.column < 0 || at.column >= shape.width) return -1;
  return ((at.sample * shape.height + at.row) * shape.width + at.column) * shape.channels + at.channel;
}

std::int64_t inputs_of_a_group(const ConvolutionShape& shape) { return shape.input.channels / shape.groups; }
std::int64_t outputs_of_a_group(const ConvolutionShape& shape) { return shape.output.channels / shape.groups; }

std::int64_t weight_index(const ConvolutionShape& shape, std::int64_t output, std::int64_t r, std::int64_t s,
                          std::int64_t input) {
  return ((output * shape.kernel + r) * shape.kernel + s) * inputs_of_a_group(shape) + input;
}

double forward_element(const ConvolutionShape& shape, std::int64_t index, const ElementOf& x, const ElementOf& w) {
  const Coordinates at = coordinates_in(shape.output, index);
  const std::int64_t inputs = inputs_of_a_group(shape), first = at.channel / outputs_of_a_group(shape) * inputs;
  double sum = 0;
  for (std::int64_t r = 0; r < shape.kernel; ++r)
    for (std::int64_t s = 0; s < shape.kernel; ++s) {
      const std::int64_t from = index_in(shape.input, {at.sample, at.row * shape.stride + r - shape.padding,
                                                       at.column * shape.stride + s - shape.padding, first});
      if (from < 0) continue;
      for (std::int64_t i = 0; i < inputs; ++i) sum += x(from + i) * w(weight_index(shape, at.channel, r, s, i));
    }
  return sum;
}

double backward_data_element(const ConvolutionShape& shape, std::int64_t index, const ElementOf& dy,
                             const ElementOf& w) {
  const Coordinates at = coordinates_in(shape.input, index);
  const std::int64_t inputs = inputs_of_a_group(shape), outputs = outputs_of_a_group(shape);
  const std::int64_t first = at.channel / inputs * outputs;
  double sum = 0;
  for (std::int64_t r = 0; r < shape.kernel; ++r)
    for (std::int64_t s = 0; s < shape.kernel; ++s) {
      const std::int64_t row = at.row + shape.padding - r, column = at.column + shape.padding - s;
      if (row % shape.stride != 0 || column % shape.stride != 0) continue;
      const std::int64_t from = index_in(shape.output, {at.sample, row / shape.stride, column / shape.stride, first});
      if (from < 0) continue;
      for (std::int64_t k = 0; k < outputs; ++k)
        sum += dy(from + k) * w(weight_index(shape, first + k, r, s, at.channel % inputs));
    }
  return sum;
}

double backward_weights_element(const ConvolutionShape& shape, std::int64_t index, const ElementOf& x,
                                const ElementOf& dy) {
  const std::int64_t inputs = inputs_of_a_group(shape);
  const std::int64_t tap = index / inputs % (shape.kernel * shape.kernel);
  const std::int64_t r = tap / shape.kernel, s = tap % shape.kernel;
  const std::int64_t output = index / inputs / (shape.kernel * shape.kernel);
  const std::int64_t input = output / outputs_of_a_group(shape) * inputs + index % inputs;
  double sum = 0;
  for (std::int64_t n = 0; n < shape.output.batch; ++n)
    for (std::int64_t p = 0; p < shape.output.height; ++p)
      for (std::int64_t q = 0; q < shape.output.width; ++q) {
        const std::int64_t from = index_in(
            shape.input, {n, p * shape.stride + r - shape.padding, q * shape.stride + s - shape.padding, input});
        if (from >= 0) sum += x(from) * dy(index_in(shape.output, {n, p, q, output}));
      }
  return sum;
}

}  // namespace

std::int64_t products_of_an_element(const Convolution& convolution) {
  const ConvolutionShape& shape = convolution.shape;
  const std::int64_t taps = shape.kernel * shape.kernel;
  switch (convolution.direction) {
    case Direction::forward: return taps * inputs_of_a_group(shape);
    case Direction::backward_data: return taps * outputs_of_a_group(shape);
    case Direction::backward_weights: return shape.output.pixels();
  }
  return 0;
}

std::int64_t elements_of_the_result(const Convolution& convolution) {
  const ConvolutionShape& shape = convolution.shape;
  switch (convolution.direction) {
    case Direction::forward: return shape.output.size();
    case Direction::backward_data: return shape.input.size();
    case Direction::backward_weights: return shape.weights();
  }
  return 0;
}

double element_of_the_result(const Convolution& convolution, std::int64_t index, const ElementOf& first,
                             const ElementOf& second) {
  switch (convolution.direction) {
    case Direction::forward: return forward_element(convolution.shape, index, first, second);
    case Direction::backward_data: return backward_data_element(convolution.shape, index, first, second);
    case Direction::backward_weights: return backward_weights_element(convolution.shape, index, first, second);
  }
  return 0;
}

}  // namespace troupe::gpu
