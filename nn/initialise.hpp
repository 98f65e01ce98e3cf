/// Initial parameters and statistics. Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "core/kernels.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// Fills `canonical` [graph.parameter_count()] with the initial parameters, a function of (graph, seed) alone: all replicas,
/// backends and resumed runs start from the same bits. Parameter k draws from Random(seed, Purpose::initialise, k) in row-major
/// order; formulas at Initialiser. REQUIRES: the size fits (std::invalid_argument).
void initialise(const Graph& graph, std::uint64_t seed, core::Span canonical);

/// Fills a statistics arena, laid out by statistics_layout(graph), with the initial running values; zero in between. REQUIRES: the
/// size fits (std::invalid_argument).
void initialise_statistics(const Graph& graph, core::Span arena);

}  // namespace troupe::nn
