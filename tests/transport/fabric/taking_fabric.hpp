/// A CUDA-aware library for machines without one: a real library that gets a FakeDevice's memory under the addresses of the host. So messages in
/// device memory go over real UCX and MPI, within a process and between processes.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "transport/endpoint_options.hpp"

namespace troupe::transport::testing {

/// The endpoint `kind`, of a library that says that it takes device memory. Staged where it must be, if options.device is set. `straight` counts
/// the transfers in device memory, sends and receives.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_taking_endpoint(
    const std::string& kind, const EndpointOptions& options, const std::shared_ptr<std::atomic<unsigned>>& straight);

}  // namespace troupe::transport::testing
