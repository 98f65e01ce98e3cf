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

bool joins(const Layer& layer) {
  return std::holds_alternative<AddLayer>(layer) || std::holds_alternative<ConcatLayer>(layer);
}

/// y of a node with several inputs: the sum, or the parts of each sample one after the other.
void join_forward(const Node& node, const std::vector<std::span<const double>>& inputs, std::size_t batch,
                  std::span<double> y) {
  const bool sum = std::holds_alternative<AddLayer>(node.layer);
  for (std::size_t s = 0; s < batch; ++s) {
    std::size_t at = s * units(node.output);
    for (const auto& x : inputs) {
      if (sum) at = s * units(node.output);
      for (const double value : x.subspan(s * (x.size() / batch), x.size() / batch)) y[at++] += value;
    }
  }
}

/// Adds to the gradients of all inputs.
void join_backward(const Node& node, std::span<const double> dy, std::size_t batch,
                   const std::vector<std::span<double>>& dxs) {
  const bool sum = std::holds_alternative<AddLayer>(node.layer);
  for (std::size_t s = 0; s < batch; ++s) {
    std::size_t at = s * units(node.output);
    for (const auto& dx : dxs) {
      if (sum) at = s * units(node.output);
      for (double& value : dx.subspan(s * (dx.size() / batch), dx.size() / batch)) value += dy[at++];
    }
  }
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

/// Adds the mean loss of one head with its weight, the top-1 and top-5 hits of the main one, and dz.
void lose(const Graph& graph, const Head& head, std::span<const std::int32_t> labels, std::span<double> dz,
          ReferenceResult& result) {
  const std::size_t classes = units(graph.output());
  const auto batch = static_cast<double>(labels.size());
  const std::span<const double> outputs(result.activations[static_cast<std::size_t>(head.node)]);
  std::vector<double> gradient(classes);
  for (std::size_t s = 0; s < labels.size(); ++s) {
    const auto z = outputs.subspan(s * classes, classes);
    result.loss += head.weight * reference::loss_and_gradient(graph.loss(), z, labels[s], gradient) / batch;
    for (std::size_t c = 0; c < classes; ++c) dz[s * classes + c] += head.weight * gradient[c] / batch;
    if (head.node != graph.heads().back().node) continue;
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
                 graph_.inputs_of(nodes[n]).front(),
                 batch,
                 parameters.subspan(slices[n].offset, slices[n].weight),
                 parameters.subspan(slices[n].offset + slices[n].weight, slices[n].bias),
                 mask == masks.end() ? std::span<const double>{} : std::span<const double>(mask->second)};
  };
  const auto value_of = [&](int n) {
    return n < 0 ? images : std::span<const double>(result.activations[static_cast<std::size_t>(n)]);
  };
  const auto input_of = [&](std::size_t n) { return value_of(nodes[n].inputs.front()); };

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
    if (joins(nodes[n].layer)) {
      std::vector<std::span<const double>> inputs;
      for (const int from : nodes[n].inputs) inputs.push_back(value_of(from));
      join_forward(nodes[n], inputs, batch, y);
    } else {
      forward(stage, moments[n], input_of(n), y);
    }
    result.activations.push_back(std::move(y));
  }

  std::vector<std::vector<double>> dys;
  for (const auto& values : result.activations) dys.emplace_back(values.size());
  result.input_gradient.assign(images.size(), 0.0);
  const auto gradient_of = [&](int n) {
    return n < 0 ? std::span(result.input_gradient) : std::span(dys[static_cast<std::size_t>(n)]);
  };
  for (const Head& head : graph_.heads()) lose(graph_, head, labels, gradient_of(head.node), result);
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (joins(nodes[n].layer)) {
      std::vector<std::span<double>> dxs;
      for (const int from : nodes[n].inputs) dxs.push_back(gradient_of(from));
      join_backward(nodes[n], dys[n], batch, dxs);
      continue;
    }
    const Stage stage = stage_of(n);
    std::vector<double> dx(input_of(n).size());
    const std::span<double> gradients(result.gradients);
    backward(stage, moments[n], normalise,
             {input_of(n), result.activations[n], dys[n], dx, gradients.subspan(slices[n].offset, slices[n].weight),
              gradients.subspan(slices[n].offset + slices[n].weight, slices[n].bias)});
    const auto sum = gradient_of(nodes[n].inputs.front());
    for (std::size_t i = 0; i < dx.size(); ++i) sum[i] += dx[i];
  }
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
