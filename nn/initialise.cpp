#include "nn/initialise.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "core/random.hpp"
#include "nn/layout.hpp"

namespace troupe::nn {
namespace {

void fill_normal(core::Random& random, double deviation, core::Span values) {
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
}

void fill_uniform(core::Random& random, double bound, core::Span values) {
  for (float& value : values) value = static_cast<float>(random.uniform(-bound, bound));
}

void fill(const Parameter& parameter, core::Random random, core::Span values) {
  const auto fan_in = static_cast<double>(parameter.fan_in);
  const auto fan_out = static_cast<double>(parameter.fan_out);
  switch (parameter.initialiser.kind) {
    case InitialiserKind::constant: std::ranges::fill(values, static_cast<float>(parameter.initialiser.scale)); break;
    case InitialiserKind::normal: fill_normal(random, parameter.initialiser.scale, values); break;
    case InitialiserKind::uniform: fill_uniform(random, parameter.initialiser.scale, values); break;
    case InitialiserKind::xavier: fill_uniform(random, std::sqrt(6.0 / (fan_in + fan_out)), values); break;
    case InitialiserKind::he: fill_normal(random, std::sqrt(2.0 / fan_in), values); break;
  }
}

}  // namespace

void initialise(const Graph& graph, std::uint64_t seed, core::Span canonical) {
  if (canonical.size() != static_cast<std::size_t>(graph.parameter_count()))
    throw std::invalid_argument(fmt::format("{} floats for the {} parameters of model \"{}\"", canonical.size(),
                                            graph.parameter_count(), graph.name()));
  std::size_t offset = 0;
  for (std::size_t k = 0; k < graph.parameters().size(); ++k) {
    const Parameter& parameter = graph.parameters()[k];
    const auto size = static_cast<std::size_t>(parameter.size());
    fill(parameter, core::Random(seed, core::Purpose::initialise, k), canonical.subspan(offset, size));
    offset += size;
  }
}

void initialise_statistics(const Graph& graph, core::Span arena) {
  std::vector<float> canonical;
  for (const Statistic& statistic : graph.statistics())
    canonical.insert(canonical.end(), static_cast<std::size_t>(statistic.channels), statistic.initial);
  statistics_layout(graph).from_canonical(canonical, arena);
}

}  // namespace troupe::nn
