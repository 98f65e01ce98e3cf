/// DiLoCo (Douillard et al. 2023): local SGD (local_sgd.hpp) with many local steps per round and Nesterov momentum as the outer
/// optimizer,
///     Δ = mean_i (c_i − x_i);   v ← μ v − lr Δ;   c ← c + μ v − lr Δ        with lr = 0.7, μ = 0.9
///
/// Messages, bytes, staleness and a lost member: as local_sgd.
#pragma once

#include "strategies/local_sgd.hpp"

namespace troupe::strategies {

[[nodiscard]] StrategyInfo diloco();

}  // namespace troupe::strategies
