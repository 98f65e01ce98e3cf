#include "tests/nn/reference_layers.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace troupe::nn::reference {
namespace {

std::size_t at(const Shape& shape, std::int64_t c, std::int64_t h, std::int64_t w) {
  return static_cast<std::size_t>((c * shape.height + h) * shape.width + w);
}

/// Calls visit(output position, input position, kernel row, kernel column) for every window element outside the padding,
/// for one output channel of `output` and one input channel of `input`.
template <class Window, class Visit>
void for_each_tap(const Window& window, const LayerContext& context, std::int64_t out_channel, std::int64_t in_channel,
                  Visit visit) {
  for (std::int64_t oh = 0; oh < context.output.height; ++oh)
    for (std::int64_t ow = 0; ow < context.output.width; ++ow)
      for (std::int64_t kh = 0; kh < window.kernel; ++kh)
        for (std::int64_t kw = 0; kw < window.kernel; ++kw) {
          const std::int64_t ih = oh * window.stride + kh - window.padding;
          const std::int64_t iw = ow * window.stride + kw - window.padding;
          if (ih < 0 || iw < 0 || ih >= context.input.height || iw >= context.input.width) continue;
          visit(at(context.output, out_channel, oh, ow), at(context.input, in_channel, ih, iw), kh, kw);
        }
}

/// Calls visit(output position, input position, weight position) for every product of a convolution.
template <class Visit>
void for_each_product(const Conv2dLayer& layer, const LayerContext& context, Visit visit) {
  const std::int64_t inputs = context.input.channels / layer.groups;
  const std::int64_t outputs = context.output.channels / layer.groups;
  for (std::int64_t o = 0; o < context.output.channels; ++o)
    for (std::int64_t i = 0; i < inputs; ++i)
      for_each_tap(layer, context, o, o / outputs * inputs + i,
                   [&](std::size_t to, std::size_t from, std::int64_t kh, std::int64_t kw) {
                     visit(to, from,
                           static_cast<std::size_t>(((o * inputs + i) * layer.kernel + kh) * layer.kernel + kw));
                   });
}

/// Calls visit(output position, input position, 1 / values) for every value of every window: row r belongs to window i of n if
/// i / n < (r + 1) / height and r / height < (i + 1) / n, that is if they overlap.
template <class Visit>
void for_each_adaptive(const AdaptiveAveragePoolLayer& layer, const LayerContext& context, Visit visit) {
  const auto rows_of = [&](std::int64_t i, std::int64_t extent) {
    std::vector<std::int64_t> rows;
    for (std::int64_t r = 0; r < extent; ++r)
      if (i * extent < (r + 1) * layer.size && r * layer.size < (i + 1) * extent) rows.push_back(r);
    return rows;
  };
  for (std::int64_t c = 0; c < context.output.channels; ++c)
    for (std::int64_t oh = 0; oh < layer.size; ++oh)
      for (std::int64_t ow = 0; ow < layer.size; ++ow) {
        const auto rows = rows_of(oh, context.input.height);
        const auto columns = rows_of(ow, context.input.width);
        for (const auto h : rows)
          for (const auto w : columns)
            visit(at(context.output, c, oh, ow), at(context.input, c, h, w),
                  1.0 / static_cast<double>(rows.size() * columns.size()));
      }
}

/// k + alpha / size · Σ x_j² over the window around channel c at one pixel.
double lrn_base(const LrnLayer& layer, const LayerContext& context, In x, std::int64_t c, std::int64_t h,
                std::int64_t w) {
  const std::int64_t half = layer.size / 2;
  double sum = 0;
  for (std::int64_t j = std::max<std::int64_t>(0, c - half); j <= std::min(context.input.channels - 1, c + half); ++j)
    sum += x[at(context.input, j, h, w)] * x[at(context.input, j, h, w)];
  return layer.k + layer.alpha / static_cast<double>(layer.size) * sum;
}

template <class Visit>
void for_each_value(const Shape& shape, Visit visit) {
  for (std::int64_t c = 0; c < shape.channels; ++c)
    for (std::int64_t h = 0; h < shape.height; ++h)
      for (std::int64_t w = 0; w < shape.width; ++w) visit(c, h, w);
}

struct Forward {
  const LayerContext& context;
  In x;
  Out y;

  void operator()(const LinearLayer&) const {
    for (std::size_t o = 0; o < y.size(); ++o) {
      y[o] = context.bias[o];
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += context.weight[o * x.size() + i] * x[i];
    }
  }
  void operator()(const Conv2dLayer& layer) const {
    for (std::size_t p = 0; p < y.size(); ++p)
      y[p] = layer.bias ? context.bias[p / static_cast<std::size_t>(context.output.height * context.output.width)] : 0;
    for_each_product(layer, context,
                     [&](std::size_t to, std::size_t from, std::size_t w) { y[to] += context.weight[w] * x[from]; });
  }
  void operator()(const PoolLayer& layer) const {
    std::vector<int> taps(y.size(), 0);
    for (std::int64_t c = 0; c < context.output.channels; ++c)
      for_each_tap(layer, context, c, c, [&](std::size_t to, std::size_t from, std::int64_t, std::int64_t) {
        const bool first = taps[to]++ == 0;
        if (layer.kind == PoolKind::average)
          y[to] = (first ? 0 : y[to]) + x[from];
        else if (first || x[from] > y[to])
          y[to] = x[from];
      });
    if (layer.kind == PoolKind::average)
      for (std::size_t p = 0; p < y.size(); ++p) y[p] /= taps[p];
  }
  void operator()(const ActivationLayer& layer) const {
    std::ranges::transform(x, y.begin(), [&](double v) {
      switch (layer.kind) {
        case Activation::relu: return v > 0 ? v : 0.0;
        case Activation::sigmoid: return 1 / (1 + std::exp(-v));
        case Activation::tanh: return std::tanh(v);
      }
      return v;
    });
  }
  void operator()(const DropoutLayer&) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = context.mask.empty() ? x[i] : x[i] * context.mask[i];
  }
  void operator()(const FlattenLayer&) const { std::ranges::copy(x, y.begin()); }
  void operator()(const LrnLayer& layer) const {
    for_each_value(context.input, [&](std::int64_t c, std::int64_t h, std::int64_t w) {
      const std::size_t p = at(context.input, c, h, w);
      y[p] = x[p] * std::pow(lrn_base(layer, context, x, c, h, w), -layer.beta);
    });
  }
  void operator()(const BatchNormLayer&) const { throw std::logic_error("a batch is not normalised sample by sample"); }
  void operator()(const AdaptiveAveragePoolLayer& layer) const {
    std::ranges::fill(y, 0.0);
    for_each_adaptive(layer, context,
                      [&](std::size_t to, std::size_t from, double share) { y[to] += x[from] * share; });
  }
  void operator()(const AddLayer&) const { throw std::logic_error("a sum has several inputs"); }
  void operator()(const ConcatLayer&) const { throw std::logic_error("a concatenation has several inputs"); }
};

struct Backward {
  const LayerContext& context;
  In x;
  In y;
  In dy;
  Out dx;
  Out dweight;
  Out dbias;

  void operator()(const LinearLayer&) const {
    std::ranges::fill(dx, 0.0);
    for (std::size_t o = 0; o < dy.size(); ++o) {
      dbias[o] += dy[o];
      for (std::size_t i = 0; i < x.size(); ++i) {
        dweight[o * x.size() + i] += dy[o] * x[i];
        dx[i] += dy[o] * context.weight[o * x.size() + i];
      }
    }
  }
  void operator()(const Conv2dLayer& layer) const {
    std::ranges::fill(dx, 0.0);
    for (std::size_t p = 0; layer.bias && p < dy.size(); ++p)
      dbias[p / static_cast<std::size_t>(context.output.height * context.output.width)] += dy[p];
    for_each_product(layer, context, [&](std::size_t to, std::size_t from, std::size_t w) {
      dweight[w] += dy[to] * x[from];
      dx[from] += dy[to] * context.weight[w];
    });
  }
  void operator()(const PoolLayer& layer) const {
    std::ranges::fill(dx, 0.0);
    std::vector<int> taps(dy.size(), 0);
    std::vector<bool> given(dy.size(), false);  // max: the first of equal elements gets the whole gradient
    for (std::int64_t c = 0; c < context.output.channels; ++c)
      for_each_tap(layer, context, c, c, [&](std::size_t to, std::size_t from, std::int64_t, std::int64_t) {
        ++taps[to];
        if (layer.kind == PoolKind::average || given[to] || x[from] != y[to]) return;
        given[to] = true;
        dx[from] += dy[to];
      });
    if (layer.kind == PoolKind::max) return;
    for (std::int64_t c = 0; c < context.output.channels; ++c)
      for_each_tap(layer, context, c, c, [&](std::size_t to, std::size_t from, std::int64_t, std::int64_t) {
        dx[from] += dy[to] / taps[to];
      });
  }
  void operator()(const ActivationLayer& layer) const {
    for (std::size_t i = 0; i < dx.size(); ++i) switch (layer.kind) {
        case Activation::relu: dx[i] = x[i] > 0 ? dy[i] : 0; break;
        case Activation::sigmoid: dx[i] = dy[i] * y[i] * (1 - y[i]); break;
        case Activation::tanh: dx[i] = dy[i] * (1 - y[i] * y[i]); break;
      }
  }
  void operator()(const DropoutLayer&) const {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = context.mask.empty() ? dy[i] : dy[i] * context.mask[i];
  }
  void operator()(const FlattenLayer&) const { std::ranges::copy(dy, dx.begin()); }
  /// y_c = x_c · b_c^−beta, and x_j is in b_c for |j − c| ≤ half: dx_j = dy_j · b_j^−beta − 2 · beta · alpha / size · x_j · Σ_c dy_c · y_c / b_c.
  void operator()(const LrnLayer& layer) const {
    std::ranges::fill(dx, 0.0);
    const std::int64_t half = layer.size / 2;
    const double slope = 2 * layer.beta * layer.alpha / static_cast<double>(layer.size);
    for_each_value(context.input, [&](std::int64_t c, std::int64_t h, std::int64_t w) {
      const std::size_t p = at(context.input, c, h, w);
      const double base = lrn_base(layer, context, x, c, h, w);
      dx[p] += dy[p] * std::pow(base, -layer.beta);
      for (std::int64_t j = std::max<std::int64_t>(0, c - half); j <= std::min(context.input.channels - 1, c + half);
           ++j)
        dx[at(context.input, j, h, w)] -= slope * x[at(context.input, j, h, w)] * dy[p] * y[p] / base;
    });
  }
  void operator()(const BatchNormLayer&) const { throw std::logic_error("a batch is not normalised sample by sample"); }
  void operator()(const AdaptiveAveragePoolLayer& layer) const {
    std::ranges::fill(dx, 0.0);
    for_each_adaptive(layer, context,
                      [&](std::size_t to, std::size_t from, double share) { dx[from] += dy[to] * share; });
  }
  void operator()(const AddLayer&) const { throw std::logic_error("a sum has several inputs"); }
  void operator()(const ConcatLayer&) const { throw std::logic_error("a concatenation has several inputs"); }
};

}  // namespace

void forward(const Layer& layer, const LayerContext& context, In x, Out y) {
  std::visit(Forward{context, x, y}, layer);
}

void backward(const Layer& layer, const LayerContext& context, In x, In y, In dy, Out dx, Out dweight, Out dbias) {
  std::visit(Backward{context, x, y, dy, dx, dweight, dbias}, layer);
}

double loss_and_gradient(Loss loss, In z, std::int64_t label, Out dz, double smoothing) {
  const auto hot = [&](std::size_t k) { return static_cast<std::int64_t>(k) == label ? 1.0 : 0.0; };
  if (loss == Loss::squared_error) {
    double sum = 0;
    for (std::size_t k = 0; k < z.size(); ++k) {
      dz[k] = z[k] - hot(k);
      sum += dz[k] * dz[k] / 2;
    }
    return sum;
  }
  const double largest = std::ranges::max(z);
  double total = 0;
  for (const double v : z) total += std::exp(v - largest);
  double target = 0;  // Σ of the smoothed target times z
  for (std::size_t k = 0; k < z.size(); ++k) {
    const double share = (1 - smoothing) * hot(k) + smoothing / static_cast<double>(z.size());
    dz[k] = std::exp(z[k] - largest) / total - share;
    target += share * z[k];
  }
  return std::log(total) + largest - target;
}

}  // namespace troupe::nn::reference
