/// The only place that depends on every backend. Thread rule: any thread.
#pragma once

#include <memory>
#include <string_view>

#include "nn/backend.hpp"

namespace troupe::apps {

/// The backend for `cluster.device`. "cuda" is the first device of the driver, with arenas in its memory (nn::Backend::arenas). Errc::config when
/// this build or this machine does not have it, with the reason: no module, no driver, no device, a missing library.
[[nodiscard]] core::Result<std::unique_ptr<nn::Backend>> make_backend(std::string_view device);

}  // namespace troupe::apps
