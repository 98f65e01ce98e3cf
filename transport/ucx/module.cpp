// The exports of troupe_ucx.so.
#include "transport/ucx/fabric.hpp"

extern "C" {

troupe::transport::FabricVersion troupe_fabric_version;
troupe::transport::MakeFabric troupe_make_fabric;

int troupe_fabric_version() { return troupe::transport::kFabricVersion; }

void troupe_make_fabric(const troupe::transport::FabricOptions& options,
                        troupe::core::Result<std::unique_ptr<troupe::transport::Fabric>>& made) {
  made = troupe::transport::UcxFabric::make(options);
}
}
