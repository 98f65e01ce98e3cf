/// The sum of the workers' shares of the model (WorkerRule::weight), for strategies with peer messages: shares, peer messages in flight and
/// lost members add up to 1. Pure functions.
#pragma once

#include <string>

namespace troupe::strategies {

/// N shares of 1/N sum to 1 with an error of at most N · 2⁻⁵². Beyond this a sum differs from 1 by mistake.
inline constexpr double kRoundedShares = 1e-10;

/// The error text when the sum has changed from `before` to `sum`.
[[nodiscard]] std::string wrong_sum_of_shares(double sum, double before);

}  // namespace troupe::strategies
