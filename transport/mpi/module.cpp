// The exports of troupe_mpi.so.
#include "transport/mpi/fabric.hpp"
#include "transport/mpi/hub.hpp"
#include "transport/mpi/mpi_job.hpp"

extern "C" {

troupe::transport::FabricVersion troupe_fabric_version;
troupe::transport::MakeFabric troupe_make_fabric;
troupe::transport::FindDeviceSupport troupe_device_support;
troupe::transport::JoinJob troupe_join_job;

int troupe_fabric_version() { return troupe::transport::kFabricVersion; }

void troupe_make_fabric(const troupe::transport::FabricOptions& options,
                        troupe::core::Result<std::unique_ptr<troupe::transport::Fabric>>& made) {
  made = troupe::transport::MpiFabric::make(options);
}

void troupe_join_job(troupe::core::Result<std::unique_ptr<troupe::transport::Job>>& joined) {
  joined = troupe::transport::MpiJob::join();
}

void troupe_device_support(const troupe::transport::FabricOptions& /*options*/,
                           troupe::transport::DeviceSupport& found) {
  found = troupe::transport::MpiHub::device_support();
}
}
