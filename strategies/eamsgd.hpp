/// Elastic averaging with momentum, EAMSGD (Zhang, Choromanska, LeCun 2015, section 3.2): elastic averaging (easgd.hpp) around
/// local steps with Nesterov momentum,
///     v ← μ v − η ∇f(x + μ v);   x ← x + v;   every τ steps   d = x − c;   x ← x − α_w d;   c ← c + α_s d
///
/// A worker's params are the point x + μ v, at which it takes the next gradient (core::OptimizerKind::nesterov). Before an exchange
/// the worker goes back to x, and after it forward again: the centre never receives a look-ahead point.
///
/// Messages, bytes, staleness and a lost member: as easgd.
#pragma once

#include "strategies/easgd.hpp"

namespace troupe::strategies {

[[nodiscard]] StrategyInfo eamsgd();

}  // namespace troupe::strategies
