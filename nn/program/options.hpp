/// What every backend needs of CompileOptions. Compile time only. Thread rule: pure.
#pragma once

#include <string>

#include "nn/backend.hpp"

namespace troupe::nn {

/// "model lenet on the cpu: why", Errc::config.
[[nodiscard]] tl::unexpected<core::Error> refuse(const Graph& graph, const std::string& backend,
                                                 const std::string& why);

/// Errc::config: batch, threads or arenas that no backend takes; a batch norm of one value per channel, which has no variance.
/// Errc::out_of_memory: a layer of more values than there are addresses. `backend`: "the cpu".
[[nodiscard]] core::Result<void> check_options(const Graph& graph, const CompileOptions& options,
                                               const std::string& backend);

}  // namespace troupe::nn
