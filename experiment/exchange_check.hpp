/// Checks that exchange.endpoint, exchange.algorithm, exchange.wire and the members suit each other, and what they mean together. Pure.
#pragma once

#include "experiment/settings.hpp"
#include "transport/exchange/collectives/algorithm.hpp"

namespace troupe::experiment {

/// Errc::config with file:line. Not for Use::remains and Use::forecast, which exchange nothing.
[[nodiscard]] core::Result<void> check_exchange(const core::Config& config, Use use);

/// The use of a configuration, by its exchange: Use::processes where one process cannot run it, else Use::run.
[[nodiscard]] Use intended_use(const core::Config& config);

/// The algorithm of reductions between processes: the named one, or asa16 in place of `auto` and `asa` where the wire has 16 bits. The other
/// algorithms sum in float32.
[[nodiscard]] exchange::Algorithm reduction_algorithm(const ExchangeConfig& config);

}  // namespace troupe::experiment
