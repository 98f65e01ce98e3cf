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

}  // namespace

std::vector<std::string> own_state_names(const SafetensorsFile& file) {
  std::vector<std::string> names;
  const auto text = file.metadata().find(std::string(kOwnStatesKey));
  if (text == file.metadata().end()) return names;
  std::istringstream words(text->second);
  for (std::string name; words >> name;) names.push_back(std::move(name));
  return names;
}

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
    auto copied =
        file.copy_floats(std::string(prefix) + parameter.name, parameter.shape, canonical.subspan(offset, size));
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
    tensors.push_back(
        {statistic.name, DType::f32, {statistic.channels}, std::as_bytes(canonical.subspan(offset, size))});
    offset += size;
  }
  return tensors;
}

core::Result<void> statistics_from(const SafetensorsFile& file, const Graph& graph, core::Span canonical) {
  std::size_t offset = 0;
  for (const auto& statistic : graph.statistics()) {
    const auto size = static_cast<std::size_t>(statistic.channels);
    auto copied = file.copy_floats(statistic.name, {statistic.channels}, canonical.subspan(offset, size));
    if (!copied) return copied;
    offset += size;
  }
  return {};
}

}  // namespace troupe::nn
