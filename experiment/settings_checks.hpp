/// What keys of a configuration say of each other: lengths of lists, devices and numbers, pictures, what a run watches. Each key by itself is checked by
/// its table's rule (settings.hpp). Pure.
#pragma once

#include "experiment/settings.hpp"

namespace troupe::experiment {

/// Errc::config with file, line and key of the first contradiction. A forecast needs no devices.
[[nodiscard]] core::Result<void> check_settings(const Settings& settings, Use use);

}  // namespace troupe::experiment
