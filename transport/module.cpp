#include "transport/module.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "transport/fabric.hpp"
#include "transport/fabric_endpoint.hpp"

namespace troupe::transport {
namespace {

/// What the libraries read as they are loaded.
void prepare_environment() {
  ::setenv("UCX_HANDLE_ERRORS", "none", 1);  // signals are the program's
  ::setenv("UCX_LOG_LEVEL", "fatal", 0);     // a lost peer is an error value, not a line on standard error
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  ::setenv("UCX_MEM_EVENTS", "n", 1);  // its hooks of malloc and mmap stand in the sanitizer's way
#endif
}

/// The shared object, loaded.
core::Result<void*> open_module(const std::string& kind) {
  const auto path = find_module(kind);
  if (!path)
    return core::fail(core::Errc::config, fmt::format("'{}': its module troupe_{}.so is not there", kind, kind));
  prepare_environment();
  // Global: MPI's own plug-ins look for its symbols.
  void* module = ::dlopen(path->c_str(), RTLD_NOW | (kind == "mpi" ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!module)
    return core::fail(core::Errc::config,
                      fmt::format("'{}' cannot be loaded, install its library: {}", kind, ::dlerror()));
  return module;
}

tl::unexpected<core::Error> of_another_build(const std::string& kind) {
  return core::fail(core::Errc::config,
                    fmt::format("'{}': troupe_{}.so is of another build, build it again", kind, kind));
}

template <class Function>
Function* find(void* module, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(module, name));
}

struct Module {
  MakeFabric* make = nullptr;
  JoinJob* join = nullptr;  // of mpi
};

core::Result<Module> load(const std::string& kind) {
  const auto opened = open_module(kind);
  if (!opened) return core::fail(opened.error().code, "endpoint " + opened.error().message);
  auto* version = find<FabricVersion>(*opened, "troupe_fabric_version");
  auto* make = find<MakeFabric>(*opened, "troupe_make_fabric");
  if (!version || !make || version() != kFabricVersion) return of_another_build(kind);
  return Module{make, find<JoinJob>(*opened, "troupe_join_job")};
}

}  // namespace

std::optional<std::filesystem::path> find_module(std::string_view kind) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  const auto file = fmt::format("troupe_{}.so", kind);
  for (const auto& folder : {program.parent_path() / "lib", program})
    if (std::filesystem::exists(folder / file, error)) return folder / file;
  return std::nullopt;
}

core::Result<std::unique_ptr<Endpoint>> make_module_endpoint(const std::string& kind, const EndpointOptions& options) {
  const auto module = load(kind);
  if (!module) return tl::unexpected(module.error());
  core::Result<std::unique_ptr<Fabric>> fabric = core::fail(core::Errc::internal, "the module made nothing");
  module->make({.transports = options.ucx_transports, .piece = options.mpi_piece}, fabric);
  if (!fabric) return tl::unexpected(fabric.error());
  return std::make_unique<FabricEndpoint>(kind, std::move(*fabric), options);
}

core::Result<std::unique_ptr<Job>> join_job() {
  const auto module = load("mpi");
  if (!module) return tl::unexpected(module.error());
  if (!module->join) return core::fail(core::Errc::internal, "troupe_mpi.so knows of no jobs");
  core::Result<std::unique_ptr<Job>> joined = core::fail(core::Errc::internal, "the module joined nothing");
  module->join(joined);
  return joined;
}

core::Result<std::shared_ptr<DeviceCopier>> make_device_copier(int device) {
  const auto opened = open_module("cuda");
  if (!opened) return tl::unexpected(opened.error());
  auto* version = find<CopierVersion>(*opened, "troupe_copier_version");
  auto* make = find<MakeCopier>(*opened, "troupe_make_copier");
  if (!version || !make || version() != kCopierVersion) return of_another_build("cuda");
  core::Result<std::shared_ptr<DeviceCopier>> made = core::fail(core::Errc::internal, "the module made nothing");
  make(device, made);
  return made;
}

void add_module(EndpointRegistry& registry, const std::string& kind, std::string_view packages) {
  if (find_module(kind))
    registry.add(kind, [kind](const EndpointOptions& options) { return make_module_endpoint(kind, options); });
  else
    registry.add_absent(kind, fmt::format("troupe_{}.so is missing: install {} and build again", kind, packages));
}

}  // namespace troupe::transport
