/// UCX's context: the transports that it uses here, and the memory that these take. Only the module troupe_ucx.so contains it. Thread rule: any
/// thread; it reads the environment.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

#include "core/error.hpp"
#include "transport/fabric/fabric.hpp"

namespace troupe::transport {

struct UcxContext {
  ucp_context_h handle = nullptr;  // the caller's, for ucp_cleanup()
  bool takes_device = false;       // UCX has its CUDA transports, and they have found a device
};

/// `transports`: as UCX_TLS, empty: the environment's. Errc::config: UCX does not start with them. Errc::io: any other error of UCX.
[[nodiscard]] core::Result<UcxContext> make_ucx_context(const std::string& transports);

/// Makes a context to find out, which takes UCX some milliseconds.
[[nodiscard]] DeviceSupport ucx_device_support(const std::string& transports);

}  // namespace troupe::transport
