/// Loads the modules that contain a Fabric, as troupe_ucx.so. Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "transport/common/module.hpp"
#include "transport/endpoint_options.hpp"
#include "transport/fabric/fabric.hpp"

namespace troupe::transport {

struct FabricModule {
  void* handle = nullptr;
  MakeFabric* make = nullptr;
  FindDeviceSupport* device_support = nullptr;
};

/// Loads the module, which stays loaded. Errc::config when it cannot be loaded or has another version.
[[nodiscard]] core::Result<FabricModule> load_fabric(const std::string& kind, Symbols symbols);

/// Loads the module and makes an endpoint of its Fabric. Errc::config as above; otherwise the library's error.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_module_endpoint(const std::string& kind, Symbols symbols,
                                                                           const EndpointOptions& options);

}  // namespace troupe::transport
