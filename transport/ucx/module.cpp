// The exports of troupe_ucx.so.
#include "transport/ucx/context.hpp"
#include "transport/ucx/fabric.hpp"

extern "C" {

troupe::transport::FabricVersion troupe_fabric_version;
troupe::transport::MakeFabric troupe_make_fabric;
troupe::transport::FindDeviceSupport troupe_device_support;

int troupe_fabric_version() { return troupe::transport::kFabricVersion; }

void troupe_make_fabric(const troupe::transport::FabricOptions& options,
                        troupe::core::Result<std::unique_ptr<troupe::transport::Fabric>>& made) {
  made = troupe::transport::UcxFabric::make(options);
}

void troupe_device_support(const troupe::transport::FabricOptions& options, troupe::transport::DeviceSupport& found) {
  found = troupe::transport::ucx_device_support(options.transports);
}
}
