/// Whether exchange.endpoint, exchange.algorithm and exchange.wire suit each other, and those who are to exchange. Pure.
#pragma once

#include "experiment/settings.hpp"

namespace troupe::experiment {

/// Errc::config with file:line. Not asked for Use::remains and Use::forecast, which exchange nothing.
[[nodiscard]] core::Result<void> check_exchange(const core::Config& config, Use use);

/// What a configuration is for, by how it exchanges: Use::run, or Use::processes where one process alone cannot.
[[nodiscard]] Use intended_use(const core::Config& config);

}  // namespace troupe::experiment
