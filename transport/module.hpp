/// Libraries that are loaded when they are used: the program starts where UCX, MPI or a GPU driver is not installed. A module
/// is a shared object named troupe_<kind>.so, in ../lib beside the program's folder or in that folder itself.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "transport/device_copier.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_registry.hpp"
#include "transport/job.hpp"

namespace troupe::transport {

/// Where the module of this kind is; nothing when it was not built. Thread-safe.
[[nodiscard]] std::optional<std::filesystem::path> find_module(std::string_view kind);

/// Loads the module (once; it stays) and makes an endpoint of it. Errc::config when it cannot be loaded, with the
/// loader's reason; else what the library says. Loading sets environment variables of the library: do it before threads
/// that read the environment. One thread at a time.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_module_endpoint(const std::string& kind,
                                                                           const EndpointOptions& options);

/// Loads troupe_mpi.so and joins the job that this process is a rank of. Call before other threads start; collective, see JoinJob.
/// Errc::config when it cannot be loaded, and what MPI says.
[[nodiscard]] core::Result<std::unique_ptr<Job>> join_job();

/// Loads troupe_cuda.so and makes a copier of that device, for EndpointOptions::device. Errc::config when it cannot be loaded, or there is
/// no such device.
[[nodiscard]] core::Result<std::shared_ptr<DeviceCopier>> make_device_copier(int device);

/// Adds `kind` to the registry: present when its module is, else absent with `packages` to install.
void add_module(EndpointRegistry& registry, const std::string& kind, std::string_view packages);

}  // namespace troupe::transport
