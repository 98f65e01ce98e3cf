/// The same run wherever it can be: the commands of the real program, and what they say about the numbers. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "transport/security/tls_files.hpp"
#include "tests/folder.hpp"
#include "tests/nodes/process.hpp"

namespace troupe::matrix {

/// Where the members of a run are, and what carries vectors between them.
enum class World : std::uint8_t {
  threads,       // one process: members lend each other their memory
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
  int buckets = 1;         // of gradients; in virtual time only, as elsewhere the backend says it
};

/// Certificates, two nodes that have them, and a folder for runs.
class Worlds {
 public:
  /// Throws when a node does not start.
  Worlds();
  /// Ends the nodes and says whether they ended well.
  [[nodiscard]] bool close();

  /// Worlds that this machine or this build has not got, and why; empty: it has them all.
  [[nodiscard]] const std::vector<std::pair<World, std::string>>& missing() const { return missing_; }
  [[nodiscard]] bool has(World world) const;

  /// A run's numbers: what must be equal in all worlds; or, beginning with "failed: ", what went wrong.
  struct Numbers {
    std::string run{};       // of the run itself, or of the forecast
    std::string replayed{};  // of its replay; empty in virtual time
  };
  /// As many of `worlds` at once as there are cores.
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
