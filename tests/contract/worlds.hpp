/// The worlds: everything that implements the ports. Each runs a probe, whole, and says what came of it.
///
///   explore            explore/, a random schedule per seed: in_place, carried
///   sim                sim/, with real numbers on uneven machines
///   actors             actors/ in one process: members lend each other memory
///   actors over KIND   every worker a site of its own, vectors over an endpoint (tcp_tls: tcp with certificates); the shards with
///                      the workers, or (… dedicated) all with the coordinator. Not mpi: its endpoints are those of a job's ranks,
///                      and this program is one process; tests/matrix has it.
///   actors over nodes  the same, all workers at a node that the run has connected to; some are lost and taken back
///   replay …           what one of those has recorded
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace troupe::tests {
class SmallRun;
}

namespace troupe::contract {

struct Scenario {
  std::string probe;
  std::vector<std::string> options{};  // "strategy.in_step=true"
  std::uint32_t workers = 3;
  std::uint32_t servers = 2;
  std::uint64_t seed = 1;
  std::uint32_t epochs = 2;
  bool losses = false;  // members are lost in the middle of it, and come back (explore draws its own in any case)
};

/// A float of the centre: what it began with, and what it was at the end.
struct CenterFloat {
  float began = 0;
  float ended = 0;
};
/// What came of a run, beside the tally (promises.hpp).
struct Seen {
  std::string error;  // how it ended; empty: well
  std::vector<CenterFloat> center{};
  std::uint64_t runs = 1;
};

struct World {
  std::string name;
  std::function<Seen(const Scenario&)> run;
  bool loses = false;    // members, when it is asked to
  std::string absent{};  // why it is not here; empty: it is
};

/// For gtest.
void PrintTo(const World& world, std::ostream* stream);

[[nodiscard]] World explore_world(bool carried);
[[nodiscard]] World sim_world();
[[nodiscard]] World actors_world();
[[nodiscard]] World actors_world_over(const std::string& endpoint, bool dedicated = false);
[[nodiscard]] World nodes_world();
/// What actors over this endpoint record; empty: in one process.
[[nodiscard]] World replay_world(const std::string& endpoint);

[[nodiscard]] std::vector<World> worlds();

/// Of a run that has ended, canonical: what it began with, and what the newest checkpoint has.
[[nodiscard]] std::vector<CenterFloat> center_of(const tests::SmallRun& run);

/// A scenario as options of a run: few steps of a small model.
[[nodiscard]] std::vector<std::string> run_options(const Scenario& scenario);

/// Empty when everything in the centre is its shard's version times u.
[[nodiscard]] std::string wrong_in(const std::vector<CenterFloat>& center);

}  // namespace troupe::contract
