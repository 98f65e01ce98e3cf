#include "transport/fabric/fabric_module.hpp"

#include <utility>

#include "transport/fabric/endpoint.hpp"

namespace troupe::transport {

core::Result<FabricModule> load_fabric(const std::string& kind, Symbols symbols) {
  const auto opened = transport::open_module(kind, symbols);  // not core's, which Symbols would find too
  if (!opened) return core::fail(opened.error().code, "endpoint " + opened.error().message);
  auto* version = function_of<FabricVersion>(*opened, "troupe_fabric_version");
  auto* make = function_of<MakeFabric>(*opened, "troupe_make_fabric");
  auto* device = function_of<FindDeviceSupport>(*opened, "troupe_device_support");
  if (!version || !make || !device || version() != kFabricVersion) return tl::unexpected(of_another_build(kind));
  return FabricModule{*opened, make, device};
}

core::Result<std::unique_ptr<Endpoint>> make_module_endpoint(const std::string& kind, Symbols symbols,
                                                             const EndpointOptions& options) {
  const auto module = load_fabric(kind, symbols);
  if (!module) return tl::unexpected(module.error());
  core::Result<std::unique_ptr<Fabric>> fabric = core::fail(core::Errc::internal, "the module made nothing");
  module->make({.transports = options.ucx_transports, .piece = options.mpi_piece}, fabric);
  if (!fabric) return tl::unexpected(fabric.error());
  return std::make_unique<FabricEndpoint>(kind, std::move(*fabric), options);
}

}  // namespace troupe::transport
