#include "tests/nn/reference_model.hpp"

#include <stdexcept>

#include "nn/dropout.hpp"
#include "tests/nn/reference_layers.hpp"

namespace troupe::nn {
namespace {

std::size_t units(const Shape& shape) { return static_cast<std::size_t>(shape.size()); }

/// Where a node's weight starts in the canonical vector, and how long it and its bias are (0, 0 without parameters).
struct Slices {
  std::size_t offset = 0;
  std::size_t weight = 0;
  std::size_t bias = 0;
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
  return slices;
}

}  // namespace

std::int64_t reference_rank(std::span<const double> outputs, std::int64_t label) {
  const double own = outputs[static_cast<std::size_t>(label)];
  std::int64_t rank = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k] > own || (outputs[k] == own && static_cast<std::int64_t>(k) < label)) ++rank;
  return rank;
}

ReferenceResult ReferenceModel::run(std::span<const float> images, std::span<const std::int32_t> labels,
                                    const Masks& masks) const {
  const std::vector<double> wide(images.begin(), images.end());
  return run(std::span<const double>(wide), labels, masks);
}

ReferenceResult ReferenceModel::run(std::span<const double> images, std::span<const std::int32_t> labels,
                                    const Masks& masks) const {
  const auto& nodes = graph_.nodes();
  const std::size_t batch = labels.size();
  const std::size_t classes = units(graph_.output());
  if (images.size() != batch * units(graph_.input()))
    throw std::invalid_argument("images do not fit the labels and the model's input");
  const auto slices = slices_of(graph_);
  const std::span<const double> parameters(parameters_);

  ReferenceResult result;
  result.gradients.assign(parameters_.size(), 0.0);
  result.input_gradient.resize(images.size());
  for (const auto& node : nodes) result.activations.emplace_back(batch * units(node.output));

  for (std::size_t s = 0; s < batch; ++s) {
    // A sample's slice of a batch-shaped vector.
    const auto sample = [&](auto& vector, std::size_t size) { return std::span(vector).subspan(s * size, size); };
    const auto site_of = [&](std::size_t n) {
      reference::Site site{n == 0 ? graph_.input() : nodes[n - 1].output, nodes[n].output, {}, {}, {}};
      site.weight = parameters.subspan(slices[n].offset, slices[n].weight);
      site.bias = parameters.subspan(slices[n].offset + slices[n].weight, slices[n].bias);
      if (const auto mask = masks.find(static_cast<int>(n)); mask != masks.end())
        site.mask = sample(mask->second, units(nodes[n].output));
      return site;
    };
    const auto input_of = [&](std::size_t n) -> std::span<const double> {
      if (n == 0) return sample(images, units(graph_.input()));
      return sample(result.activations[n - 1], units(nodes[n - 1].output));
    };
    for (std::size_t n = 0; n < nodes.size(); ++n)
      reference::forward(nodes[n].layer, site_of(n), input_of(n),
                         sample(result.activations[n], units(nodes[n].output)));

    const std::span<const double> z = sample(result.activations.back(), classes);
    std::vector<double> dy(classes);
    result.loss += reference::loss_and_gradient(graph_.loss(), z, labels[s], dy) / static_cast<double>(batch);
    const std::int64_t rank = reference_rank(z, labels[s]);
    result.top1 += rank == 0 ? 1 : 0;
    result.top5 += rank < 5 && classes >= 5 ? 1 : 0;
    for (double& v : dy) v /= static_cast<double>(batch);

    for (std::size_t n = nodes.size(); n-- > 0;) {
      const auto site = site_of(n);
      std::vector<double> dx(units(site.input));
      const std::span<double> gradients(result.gradients);
      const auto dweight = gradients.subspan(slices[n].offset, slices[n].weight);
      const auto dbias = gradients.subspan(slices[n].offset + slices[n].weight, slices[n].bias);
      const std::span<const double> y = sample(result.activations[n], units(nodes[n].output));
      reference::backward(nodes[n].layer, site, input_of(n), y, dy, dx, dweight, dbias);
      dy = std::move(dx);
    }
    std::copy(dy.begin(), dy.end(), sample(result.input_gradient, units(graph_.input())).begin());
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
