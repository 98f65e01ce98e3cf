/// A graph as a chain of linear layers with activations: what can be split by neurons (model.parallel = "neurons"). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// outputs = f(weight · inputs + bias)
struct LinearLink {
  int node = 0;             // of the linear layer
  int first_parameter = 0;  // index in Graph::parameters() of its weight; the bias follows
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::optional<Activation> activation{};
};

/// The linear layers of a graph that has nothing else but flatten and, behind a linear layer, one activation, and one loss.
/// Errc::config names the first layer that does not fit.
[[nodiscard]] core::Result<std::vector<LinearLink>> linear_chain(const Graph& graph);

}  // namespace troupe::nn
