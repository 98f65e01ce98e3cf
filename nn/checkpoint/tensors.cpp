#include "nn/checkpoint/tensors.hpp"

#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::nn {
namespace {

void check_size(const Graph& graph, std::size_t size) {
  if (size != static_cast<std::size_t>(graph.parameter_count()))
    throw std::invalid_argument(
        fmt::format("{} floats for the {} parameters of model \"{}\"", size, graph.parameter_count(), graph.name()));
}

/// The tensor may have its older shape.
core::Result<void> copy(const SafetensorsFile& file, const std::string& name, const std::vector<std::int64_t>& shape,
                        const std::vector<std::int64_t>& older, core::Span out) {
  const auto* const found = file.find(name);
  return file.copy_floats(name, found != nullptr && found->shape == older ? older : shape, out);
}

}  // namespace

std::vector<std::string> own_state_names(const SafetensorsFile& file) {
  std::vector<std::string> names;
  const auto text = file.metadata().find(std::string(kOwnStatesKey));
  if (text == file.metadata().end()) return names;
  std::istringstream words(text->second);
  for (std::string name; words >> name;) names.push_back(std::move(name));
  return names;
}

std::vector<std::int64_t> older_shape(const Parameter& parameter) {
  return parameter.shape.empty() ? std::vector<std::int64_t>{1} : parameter.shape;
}

std::vector<std::int64_t> older_shape(const Statistic& statistic) { return {statistic.channels}; }

std::string worker_prefix(int worker) { return fmt::format("worker.{}.", worker); }

std::vector<TensorView> canonical_tensors(const Graph& graph, core::ConstSpan canonical, std::string_view prefix) {
  check_size(graph, canonical.size());
  std::vector<TensorView> tensors;
  std::size_t offset = 0;
  for (const auto& parameter : graph.parameters()) {
    const auto size = static_cast<std::size_t>(parameter.size());
    tensors.push_back({std::string(prefix) + parameter.name, DType::f32, parameter.shape,
                       std::as_bytes(canonical.subspan(offset, size))});
    offset += size;
  }
  return tensors;
}

core::Result<void> canonical_from(const SafetensorsFile& file, const Graph& graph, core::Span canonical,
                                  std::string_view prefix) {
  check_size(graph, canonical.size());
  std::size_t offset = 0;
  for (const auto& parameter : graph.parameters()) {
    const auto size = static_cast<std::size_t>(parameter.size());
    auto copied = copy(file, std::string(prefix) + parameter.name, parameter.shape, older_shape(parameter),
                       canonical.subspan(offset, size));
    if (!copied) return copied;
    offset += size;
  }
  return {};
}

std::vector<TensorView> statistics_tensors(const Graph& graph, core::ConstSpan canonical) {
  std::vector<TensorView> tensors;
  std::size_t offset = 0;
  for (const auto& statistic : graph.statistics()) {
    const auto size = static_cast<std::size_t>(statistic.channels);
    tensors.push_back({statistic.name, DType::f32, statistic.shape(), std::as_bytes(canonical.subspan(offset, size))});
    offset += size;
  }
  return tensors;
}

core::Result<void> statistics_from(const SafetensorsFile& file, const Graph& graph, core::Span canonical) {
  std::size_t offset = 0;
  for (const auto& statistic : graph.statistics()) {
    const auto size = static_cast<std::size_t>(statistic.channels);
    auto copied =
        copy(file, statistic.name, statistic.shape(), older_shape(statistic), canonical.subspan(offset, size));
    if (!copied) return copied;
    offset += size;
  }
  return {};
}

}  // namespace troupe::nn
