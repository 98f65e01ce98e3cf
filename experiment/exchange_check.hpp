/// Checks that exchange.endpoint, exchange.algorithm, exchange.wire and the members suit each other. Pure.
#pragma once

#include "experiment/settings.hpp"

namespace troupe::experiment {

/// Errc::config with file:line. Not for Use::remains and Use::forecast, which exchange nothing.
[[nodiscard]] core::Result<void> check_exchange(const core::Config& config, Use use);

/// The use of a configuration, by its exchange: Use::processes where one process cannot run it, else Use::run.
[[nodiscard]] Use intended_use(const core::Config& config);

}  // namespace troupe::experiment
