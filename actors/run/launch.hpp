/// Where a company is spawned, and what its sites in other processes must be told. Values; one thread.
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
  std::shared_ptr<Network> network{};    // that they were found by
  transport::EndpointOptions options{};  // of sites in this process
  std::string version{};                 // of this program
  std::string config{};                  // TOML, resolved, with the endpoint that was chosen
  std::string secret{};
  bool between_hosts = false;
  std::string note{};      // what was chosen, for the user; none: nothing was
  std::string launcher{};  // what has started the processes as an MPI job; none: nothing did
};

/// How its members exchange vectors: `config`, with an endpoint where there are several sites. What exchange.algorithm leaves open is
/// decided here.
[[nodiscard]] ExchangePlan exchange_plan(const Placement& placement, const experiment::ExchangeConfig& config);

/// A company in one process: one site, or, where exchange.endpoint names an endpoint, one for each worker.
[[nodiscard]] Launch launch_here(const Blueprint& plan);

/// Workers over nodes. Sets settings.exchange.endpoint to what carries vectors between these nodes. `tls`: of endpoints here.
/// Errc::config when the endpoint that is asked for cannot.
[[nodiscard]] core::Result<Launch> launch_on(std::vector<Node> nodes, Settings& settings, std::uint32_t servers,
                                             const security::TlsFiles& tls, const std::string& version);

/// Whether exchange.algorithm = "ar", if that is what the settings say, can sum: MPI sums over all ranks of a job, one vector of each.
/// Errc::config.
[[nodiscard]] core::Result<void> check_library_sum(const Settings& settings, std::uint32_t workers_per_rank);

/// The ranks of an MPI job: the first `workers_per_rank` workers are here, beside the coordinator and the centre, the others at `nodes`,
/// which are ranks 1, 2, …. Otherwise as launch_on, but that vectors go over mpi between hosts. Errors: check_library_sum's, too.
[[nodiscard]] core::Result<Launch> launch_in_job(std::vector<Node> nodes, std::uint32_t workers_per_rank,
                                                 Settings& settings, std::uint32_t servers,
                                                 const security::TlsFiles& tls, const std::string& version);

}  // namespace troupe::actors
