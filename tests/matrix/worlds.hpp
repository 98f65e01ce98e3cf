/// The same run in every world: the commands of the real program, and the numbers that they print. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/folder.hpp"
#include "tests/nodes/process.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::matrix {

/// Where the members of a run are, and what carries vectors between them.
enum class World : std::uint8_t {
  threads,       // one process: members share memory
  inproc,        // one process, and every vector goes through an endpoint
  shm,           // processes (`troupe node`) of one host
  tcp,           // the same, over TLS
  ucx,           // the same
  mpi,           // the ranks of a job (mpirun)
  virtual_time,  // `troupe simulate --gradients`
};
inline constexpr World kWorlds[] = {World::threads, World::inproc, World::shm,         World::tcp,
                                    World::ucx,     World::mpi,    World::virtual_time};
[[nodiscard]] const char* name_of(World world);

struct Members {
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  bool colocated = false;  // servers are with the workers, else with the coordinator; between sites only
  int buckets = 1;         // of gradients; in virtual time only: elsewhere the backend decides
};

/// Certificates, two nodes that have them, and a folder for runs.
class Worlds {
 public:
  /// Throws if a node does not start.
  Worlds();
  /// Ends the nodes. False: one did not end with exit code 0.
  [[nodiscard]] bool close();

  /// Worlds that this machine or this build lacks, and why; empty: none.
  [[nodiscard]] const std::vector<std::pair<World, std::string>>& missing() const { return missing_; }
  [[nodiscard]] bool has(World world) const;

  /// The numbers of a run that must be equal in all worlds; or an error, beginning with "failed: ".
  struct Numbers {
    std::string run{};       // of the run itself, or of the forecast
    std::string replayed{};  // of its replay; empty in virtual time
  };
  /// Runs as many of `worlds` at once as there are cores. Blocks until all have ended.
  [[nodiscard]] std::vector<Numbers> compute(const std::vector<World>& worlds, const Members& members,
                                             const std::vector<std::string>& settings);

 private:
  [[nodiscard]] std::vector<std::string> command(World world, const Members& members,
                                                 const std::vector<std::string>& settings) const;

  tests::Folder folder_;
  std::string config_;
  std::string cluster_;
  security::TlsFiles tls_;
  std::vector<std::unique_ptr<nodes::NodeProcess>> nodes_;
  std::vector<std::pair<World, std::string>> missing_;
};

}  // namespace troupe::matrix
