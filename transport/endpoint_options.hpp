/// What endpoints are made with. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transport/endpoint.hpp"
#include "transport/net/tcp_options.hpp"

namespace troupe::transport {

class DeviceCopier;
class InprocHub;

/// What every endpoint is given, and then what only one kind reads.
struct EndpointOptions {
  std::string name = "member";                     // of this member, in messages of its peers: "worker 3"
  std::shared_ptr<CompletionQueue> completions{};  // required
  Credit credit{};                                 // both above 0; peers are expected to agree
  std::shared_ptr<InprocHub> hub{};                // inproc: where the endpoints of this process meet; required there
  bool shm_reads_peers = true;                     // shm: fetch payloads from peers' memory where the kernel allows it
  std::string secret{};  // ucx, mpi: the run's; who greets with another one is refused. It travels in clear text
  std::string ucx_transports{};    // ucx: its UCX_TLS, "tcp,self" between hosts; empty: what the environment says
  bool check_within_host = false;  // ucx, mpi: check long messages from this host too, not only those from others
  /// mpi: MPI counts in 31 bits, so what is longer is cut: floats of a sum in one call, and bytes of a message, of which no piece has
  /// more than 4 MiB in any case. All ranks have the same.
  std::size_t mpi_piece = std::size_t{1} << 30;
  std::shared_ptr<DeviceCopier> device{};  // set: device memory is taken, staged where the endpoint cannot itself
  std::size_t staging_bytes = std::size_t{1} << 30;  // page-locked host memory that staging may hold at most
  TcpOptions tcp{};                                  // tcp: where it listens, and with which certificate
};

/// Makes an endpoint of one kind.
using MakeEndpoint = std::function<core::Result<std::unique_ptr<Endpoint>>(const EndpointOptions&)>;

}  // namespace troupe::transport
