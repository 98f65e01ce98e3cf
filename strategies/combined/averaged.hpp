/// A strategy whose model is an exponential moving average of its parameters (Polyak & Juditsky 1992; TensorFlow's
/// ExponentialMovingAverage): train.ema for every strategy, and strategy.ema of mixed. The average follows the vector that the strategy
/// evaluates and saves:
///
///     ModelHome::center       each shard:   e ← ema · e + (1 − ema) · c     after every write of c
///     ModelHome::any_worker   each worker:  e ← ema · e + (1 − ema) · x     before it begins the next step; equal on all workers
///     ModelHome::weighted     the same, of its own x; the model is Σ a_i e_i / Σ a_i
///
/// e begins as the parameters at the run's begin. Training never reads it. Memory: one vector per shard or worker. Cost: one pass over
/// the vector per update.
#pragma once

#include <memory>
#include <string_view>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

/// The slot of a worker's average.
inline constexpr Slot kWorkerAverage{SlotKind::acc, 1};

/// `strategy` itself for an `ema` of 0. REQUIRES 0 ≤ ema < 1, a strategy without an average, and one that does not use kWorkerAverage.
[[nodiscard]] std::unique_ptr<Strategy> averaged(std::unique_ptr<Strategy> strategy, double ema);

/// `server_state_of` without its average: "adam" of "adam and ema", "" of "ema".
[[nodiscard]] std::string_view without_average(std::string_view server_state_of) noexcept;

}  // namespace troupe::strategies
