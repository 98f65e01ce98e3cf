#include "tests/nn/reference_batch_norm.hpp"

#include <cmath>

namespace troupe::nn::reference {
namespace {

/// Calls visit(channel, position) for every value of a batch of `values` values.
template <class Visit>
void for_each_value(const Shape& shape, std::size_t values, Visit visit) {
  const auto pixels = static_cast<std::size_t>(shape.height * shape.width);
  const auto channels = static_cast<std::size_t>(shape.channels);
  for (std::size_t i = 0; i < values; ++i) visit(i / pixels % channels, i);
}

}  // namespace

Moments moments(const Shape& shape, In x) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  const double m = static_cast<double>(x.size()) / static_cast<double>(channels);
  Moments result{std::vector<double>(channels), std::vector<double>(channels)};
  for_each_value(shape, x.size(), [&](std::size_t c, std::size_t i) { result.mean[c] += x[i] / m; });
  for_each_value(shape, x.size(), [&](std::size_t c, std::size_t i) {
    result.variance[c] += (x[i] - result.mean[c]) * (x[i] - result.mean[c]) / m;
  });
  return result;
}

void batch_norm_forward(const BatchNormLayer& layer, const LayerContext& context, const Moments& moments, In x, Out y) {
  for_each_value(context.input, x.size(), [&](std::size_t c, std::size_t i) {
    y[i] =
        context.weight[c] * (x[i] - moments.mean[c]) / std::sqrt(moments.variance[c] + layer.epsilon) + context.bias[c];
  });
}

void batch_norm_backward(const BatchNormLayer& layer, const LayerContext& context, const Moments& moments,
                         bool of_batch, In x, In dy, Out dx, Out dweight, Out dbias) {
  const auto channels = static_cast<std::size_t>(context.input.channels);
  const double m = static_cast<double>(x.size()) / static_cast<double>(channels);
  const auto deviation = [&](std::size_t c) { return std::sqrt(moments.variance[c] + layer.epsilon); };
  const auto normal = [&](std::size_t c, std::size_t i) { return (x[i] - moments.mean[c]) / deviation(c); };
  std::vector<double> sum(channels);         // Σ dy
  std::vector<double> projection(channels);  // Σ dy · x̂
  for_each_value(context.input, x.size(), [&](std::size_t c, std::size_t i) {
    sum[c] += dy[i];
    projection[c] += dy[i] * normal(c, i);
  });
  for (std::size_t c = 0; c < channels; ++c) {
    dbias[c] += sum[c];
    dweight[c] += projection[c];
  }
  for_each_value(context.input, x.size(), [&](std::size_t c, std::size_t i) {
    const double through_moments = of_batch ? (sum[c] + normal(c, i) * projection[c]) / m : 0;
    dx[i] = context.weight[c] / deviation(c) * (dy[i] - through_moments);
  });
}

}  // namespace troupe::nn::reference
