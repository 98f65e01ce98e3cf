/// The places of a run's members, and the values that its sites in other processes need. Values; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/deployment/nodes.hpp"
#include "actors/deployment/placement.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::actors {

struct Launch {
  Placement placement = one_site();
  std::vector<Node> nodes{};             // processes 1, 2, … of the placement; some may be missing
  std::shared_ptr<Network> network{};    // their connections
  transport::EndpointOptions options{};  // of sites in this process
  std::string version{};                 // of this program
  std::string config{};                  // TOML, resolved, with the chosen endpoint
  std::string secret{};
  bool between_hosts = false;
  std::string note{};  // the choices made, for the user; may be empty
  std::vector<Note> warnings{};
  std::string launcher{};        // the program that started an MPI job; empty: no MPI job
  std::string resume_options{};  // of RunRequest
};

/// How members exchange vectors. One site: in place. exchange.algorithm = "auto" becomes asa (direct reduce-scatter + allgather,
/// Theano-MPI's alltoall-sum-allgather) or asa16; the Assembly may choose others by measuring.
[[nodiscard]] ExchangePlan exchange_plan(const Placement& placement, const Settings& settings);

/// A run in one process: one site or, if exchange.endpoint names an endpoint, site 0 and one site per worker.
[[nodiscard]] Launch launch_here(const RunSpec& spec);

/// Workers over nodes. Sets settings.exchange.endpoint to the endpoint between these nodes. `tls`: of endpoints here.
/// Errc::config: the configured endpoint cannot connect these nodes, there are more nodes than workers, or this process may open too few
/// files.
[[nodiscard]] core::Result<Launch> launch_on(std::vector<Node> nodes, Settings& settings, std::uint32_t servers,
                                             const security::TlsFiles& tls, const std::string& version);

/// Checks exchange.algorithm = "ar" (the MPI library's all-reduce), if set: MPI sums one vector of each rank, over all ranks of the job.
/// `needs`: the strategy's. Errc::config: the settings need other sums.
[[nodiscard]] core::Result<void> check_library_sum(const Settings& settings, const strategies::Needs& needs,
                                                   std::uint32_t workers_per_rank);

/// The ranks of an MPI job: the first `workers_per_rank` workers are here, with the coordinator and the centre, the others at `nodes`,
/// which are ranks 1, 2, …. Otherwise as launch_on, but the default endpoint between hosts is mpi. REQUIRES: check_library_sum().
[[nodiscard]] core::Result<Launch> launch_in_job(std::vector<Node> nodes, std::uint32_t workers_per_rank,
                                                 Settings& settings, std::uint32_t servers,
                                                 const security::TlsFiles& tls, const std::string& version);

}  // namespace troupe::actors
