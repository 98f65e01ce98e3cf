/// The options of all endpoints. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/devices/device_checksum.hpp"
#include "core/devices/device_copier.hpp"
#include "transport/endpoint.hpp"
#include "transport/net/tcp_options.hpp"

namespace troupe::transport {

class InprocHub;

/// First the options of every endpoint, then those that only one kind reads.
struct EndpointOptions {
  std::string name = "member";                     // of this member, in its peers' error messages: "worker 3"
  std::shared_ptr<CompletionQueue> completions{};  // required
  Credit credit{};                                 // both above 0; peers must have the same
  std::shared_ptr<InprocHub> hub{};                // inproc, required there: connects the endpoints of this process
  bool shm_reads_peers = true;                     // shm: fetch payloads from peers' memory where the kernel allows it
  std::string secret{};            // ucx, mpi: the run's; a hello with another one is refused. Sent in clear text
  std::string ucx_transports{};    // ucx: its UCX_TLS, "tcp,self"; empty: the environment's
  bool check_within_host = false;  // ucx, mpi: check long messages inside this host too
  /// mpi: the largest piece. MPI counts in 31 bits, so longer transfers are cut. Unit: floats for a sum, bytes for a message, whose
  /// pieces are never above 4 MiB. All ranks must have the same value.
  std::size_t mpi_piece = std::size_t{1} << 30;
  std::shared_ptr<core::DeviceCopier>
      device{};  // set: device memory is accepted, staged where the endpoint cannot reach it
  /// ucx, mpi: of the memory of `device`. Without it messages between hosts are staged, because the host computes their checksums.
  std::shared_ptr<core::DeviceChecksum> checksum{};
  std::size_t staging_bytes = std::size_t{1} << 30;  // limit of page-locked host memory for staging
  TcpOptions tcp{};                                  // tcp: listening address, certificate
};

/// Makes an endpoint of one kind.
using MakeEndpoint = std::function<core::Result<std::unique_ptr<Endpoint>>(const EndpointOptions&)>;

}  // namespace troupe::transport
