#include "tests/nn/reference_model.hpp"

#include <stdexcept>

#include "nn/dropout.hpp"
#include "tests/nn/reference_batch_norm.hpp"

namespace troupe::nn {
namespace {

std::size_t units(const Shape& shape) { return static_cast<std::size_t>(shape.size()); }

/// Offsets of a node's weight and bias in the canonical parameters, and of its running mean in the canonical statistics.
struct Slices {
  std::size_t offset = 0;
  std::size_t weight = 0;  // floats; 0: the node has none
  std::size_t bias = 0;
  std::size_t statistics = 0;
};

std::vector<Slices> slices_of(const Graph& graph) {
  std::vector<Slices> slices(graph.nodes().size());
  std::size_t offset = 0;
  for (const auto& parameter : graph.parameters()) {
    auto& slice = slices[static_cast<std::size_t>(parameter.node)];
    const auto size = static_cast<std::size_t>(parameter.size());
    if (slice.weight == 0) {
      slice.offset = offset;
      slice.weight = size;
    } else {
      slice.bias = size;
    }
    offset += size;
  }
  std::size_t statistics = 0;
  for (const auto& statistic : graph.statistics()) {
    if (statistic.initial == 0) slices[static_cast<std::size_t>(statistic.node)].statistics = statistics;
    statistics += static_cast<std::size_t>(statistic.channels);
  }
  return slices;
}

/// One node and the current batch.
struct Stage {
  const Node& node;
  Shape input;
  std::size_t batch;
  std::span<const double> weight;
  std::span<const double> bias;
  std::span<const double> masks;  // [batch, output] of a dropout; empty: identity

  [[nodiscard]] reference::LayerContext context(std::size_t sample) const {
    const std::size_t size = units(node.output);
    return {input, node.output, weight, bias, masks.empty() ? masks : masks.subspan(sample * size, size)};
  }
};

void forward(const Stage& stage, const reference::Moments& moments, std::span<const double> x, std::span<double> y) {
  if (const auto* layer = std::get_if<BatchNormLayer>(&stage.node.layer))
    return reference::batch_norm_forward(*layer, stage.context(0), moments, x, y);
  const std::size_t in = units(stage.input);
  const std::size_t out = units(stage.node.output);
  for (std::size_t s = 0; s < stage.batch; ++s)
    reference::forward(stage.node.layer, stage.context(s), x.subspan(s * in, in), y.subspan(s * out, out));
}

/// The vectors that a node's forward read and wrote, and the places of its gradients.
struct BackwardSpans {
  std::span<const double> x;
  std::span<const double> y;
  std::span<const double> dy;
  std::span<double> dx;
  std::span<double> dweight;
  std::span<double> dbias;
};

void backward(const Stage& stage, const reference::Moments& moments, Normalise normalise, const BackwardSpans& b) {
  if (const auto* layer = std::get_if<BatchNormLayer>(&stage.node.layer))
    return reference::batch_norm_backward(*layer, stage.context(0), moments, normalise == Normalise::by_batch, b.x,
                                          b.dy, b.dx, b.dweight, b.dbias);
  const std::size_t in = units(stage.input);
  const std::size_t out = units(stage.node.output);
  for (std::size_t s = 0; s < stage.batch; ++s)
    reference::backward(stage.node.layer, stage.context(s), b.x.subspan(s * in, in), b.y.subspan(s * out, out),
                        b.dy.subspan(s * out, out), b.dx.subspan(s * in, in), b.dweight, b.dbias);
}

/// The mean loss, the top-1 and top-5 hits of outputs z, and dz.
void lose(const Graph& graph, std::span<const std::int32_t> labels, std::span<double> dz, ReferenceResult& result) {
  const std::size_t classes = units(graph.output());
  const auto batch = static_cast<double>(labels.size());
  for (std::size_t s = 0; s < labels.size(); ++s) {
    const auto z = std::span<const double>(result.activations.back()).subspan(s * classes, classes);
    const auto gradient = dz.subspan(s * classes, classes);
    result.loss += reference::loss_and_gradient(graph.loss(), z, labels[s], gradient) / batch;
    for (double& v : gradient) v /= batch;
    const std::int64_t rank = reference_rank(z, labels[s]);
    result.top1 += rank == 0 ? 1 : 0;
    result.top5 += rank < 5 && classes >= 5 ? 1 : 0;
  }
}

/// Running values [mean, variance] after a batch of `samples` values per channel with these moments.
void update_statistics(const BatchNormLayer& layer, const reference::Moments& moments, double samples,
                       std::span<double> running) {
  const std::size_t channels = moments.mean.size();
  for (std::size_t c = 0; c < channels; ++c) {
    running[c] += layer.momentum * (moments.mean[c] - running[c]);
    running[channels + c] += layer.momentum * (moments.variance[c] * samples / (samples - 1) - running[channels + c]);
  }
}

}  // namespace

std::int64_t reference_rank(std::span<const double> outputs, std::int64_t label) {
  const double own = outputs[static_cast<std::size_t>(label)];
  std::int64_t rank = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k] > own || (outputs[k] == own && static_cast<std::int64_t>(k) < label)) ++rank;
  return rank;
}

ReferenceModel::ReferenceModel(Graph graph)
    : graph_(std::move(graph)), parameters_(static_cast<std::size_t>(graph_.parameter_count())) {
  for (const auto& statistic : graph_.statistics())
    statistics_.insert(statistics_.end(), static_cast<std::size_t>(statistic.channels), statistic.initial);
}

ReferenceResult ReferenceModel::run(std::span<const float> images, std::span<const std::int32_t> labels,
                                    const Masks& masks, Normalise normalise) const {
  const std::vector<double> wide(images.begin(), images.end());
  return run(std::span<const double>(wide), labels, masks, normalise);
}

ReferenceResult ReferenceModel::run(std::span<const double> images, std::span<const std::int32_t> labels,
                                    const Masks& masks, Normalise normalise) const {
  const auto& nodes = graph_.nodes();
  const std::size_t batch = labels.size();
  if (images.size() != batch * units(graph_.input()))
    throw std::invalid_argument("images do not fit the labels and the model's input");
  const auto slices = slices_of(graph_);

  ReferenceResult result;
  result.gradients.assign(parameters_.size(), 0.0);
  result.statistics = statistics_;
  std::vector<reference::Moments> moments(nodes.size());
  const auto stage_of = [&](std::size_t n) {
    const std::span<const double> parameters(parameters_);
    const auto mask = masks.find(static_cast<int>(n));
    return Stage{nodes[n],
                 n == 0 ? graph_.input() : nodes[n - 1].output,
                 batch,
                 parameters.subspan(slices[n].offset, slices[n].weight),
                 parameters.subspan(slices[n].offset + slices[n].weight, slices[n].bias),
                 mask == masks.end() ? std::span<const double>{} : std::span<const double>(mask->second)};
  };
  const auto input_of = [&](std::size_t n) {
    return n == 0 ? images : std::span<const double>(result.activations[n - 1]);
  };

  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Stage stage = stage_of(n);
    if (const auto* layer = std::get_if<BatchNormLayer>(&nodes[n].layer)) {
      const auto channels = static_cast<std::size_t>(stage.input.channels);
      const auto running = std::span(result.statistics).subspan(slices[n].statistics, 2 * channels);
      const auto means = running.first(channels);
      const auto variances = running.last(channels);
      if (normalise == Normalise::by_running) {
        moments[n] = {{means.begin(), means.end()}, {variances.begin(), variances.end()}};
      } else {
        moments[n] = reference::moments(stage.input, input_of(n));
        update_statistics(*layer, moments[n], static_cast<double>(input_of(n).size() / channels), running);
      }
    }
    std::vector<double> y(batch * units(nodes[n].output));
    forward(stage, moments[n], input_of(n), y);
    result.activations.push_back(std::move(y));
  }

  std::vector<double> dy(result.activations.back().size());
  lose(graph_, labels, dy, result);
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const Stage stage = stage_of(n);
    std::vector<double> dx(input_of(n).size());
    const std::span<double> gradients(result.gradients);
    backward(stage, moments[n], normalise,
             {input_of(n), result.activations[n], dy, dx, gradients.subspan(slices[n].offset, slices[n].weight),
              gradients.subspan(slices[n].offset + slices[n].weight, slices[n].bias)});
    dy = std::move(dx);
  }
  result.input_gradient = std::move(dy);
  result.outputs = result.activations.back();
  return result;
}

ReferenceModel::Masks ReferenceModel::dropout_masks(std::uint64_t seed, std::uint64_t lease, std::int64_t batch) const {
  Masks masks;
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const auto* layer = std::get_if<DropoutLayer>(&graph_.nodes()[n].layer);
    if (layer == nullptr) continue;
    std::vector<float> mask(static_cast<std::size_t>(batch) * units(graph_.nodes()[n].output));
    dropout_mask(seed, lease, static_cast<int>(n), layer->rate, mask);
    masks[static_cast<int>(n)].assign(mask.begin(), mask.end());
  }
  return masks;
}

}  // namespace troupe::nn
