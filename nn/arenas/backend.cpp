// What nn/backend.hpp says of arenas: canonical vectors of a replica, and plain host memory where a backend has no memory of its own.
#include "nn/backend.hpp"

#include "nn/arenas/host_view.hpp"

namespace troupe::nn {

void Replica::export_canonical(core::Span canonical) { read_canonical(kernels(), *layout(), parameters(), canonical); }

void Replica::import_canonical(core::ConstSpan canonical) {
  write_canonical(kernels(), *layout(), canonical, parameters());
  parameters_written();
}

core::Allocator& Backend::arenas(const CompileOptions& /*options*/) noexcept {
  static core::HostAllocator plain;
  return plain;
}

std::string Backend::device_model(const CompileOptions& /*options*/) { return name(); }

const core::Kernels& Backend::kernels_for(const core::Allocator& /*memory*/) const noexcept {
  return core::host_kernels();
}

core::Result<std::shared_ptr<core::DeviceCopier>> Backend::copier_for(const core::Allocator& /*memory*/) {
  return std::shared_ptr<core::DeviceCopier>();
}

std::shared_ptr<core::DeviceChecksum> Backend::checksum_for(const core::Allocator& /*memory*/) { return nullptr; }

core::Result<std::shared_ptr<core::DeviceSharing>> Backend::sharing_for(const core::Allocator& /*memory*/) {
  return core::fail(core::Errc::config, "it is not the memory of a device that others map");
}

core::Result<std::shared_ptr<core::DeviceReduction>> Backend::reduction_for(const core::Allocator& /*memory*/) {
  return core::fail(core::Errc::config, "it sums in the memory of GPUs only");
}

}  // namespace troupe::nn
