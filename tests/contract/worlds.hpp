/// The worlds: all implementations of the ports. Each runs a whole probe and returns the outcome.
///
///   explore            explore/, a random schedule per seed: in_place, carried
///   sim                sim/, with real numbers on uneven machines
///   actors             actors/ in one process: members borrow each other's memory
///   actors over KIND   every worker is a site of its own, vectors go over an endpoint (tcp_tls: tcp with certificates); the shards are
///                      with the workers, or (… dedicated) all with the coordinator. Not mpi: its endpoints are those of a job's
///                      ranks, and this program is one process; tests/matrix has it.
///   actors over nodes  the same, all workers at a node that the run has connected to; some are lost and rejoin
///   replay …           a recorded run of one of those
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
  bool losses = false;  // members are lost during the run and rejoin (explore draws its own losses in any case)
};

/// A float of the centre at the beginning and at the end.
struct CenterFloat {
  float began = 0;
  float ended = 0;
};
/// The outcome of a run, beside the tally (promises.hpp).
struct Seen {
  std::string error;  // the run's error; empty: none
  std::vector<CenterFloat> center{};
  std::uint64_t runs = 1;
};

struct World {
  std::string name;
  std::function<Seen(const Scenario&)> run;
  bool loses = false;    // can lose members, if the scenario asks for it
  std::string absent{};  // why this build lacks it; empty: it is there
};

/// For gtest.
void PrintTo(const World& world, std::ostream* stream);

[[nodiscard]] World explore_world(bool carried);
[[nodiscard]] World sim_world();
[[nodiscard]] World actors_world();
[[nodiscard]] World actors_world_over(const std::string& endpoint, bool dedicated = false);
[[nodiscard]] World nodes_world();
/// Replays what actors over this endpoint have recorded; empty: actors in one process.
[[nodiscard]] World replay_world(const std::string& endpoint);

[[nodiscard]] std::vector<World> worlds();

/// The centre of a finished run in canonical order: the initial values, and those of the newest checkpoint.
[[nodiscard]] std::vector<CenterFloat> center_of(const tests::SmallRun& run);

/// A scenario as options of a run: few steps of a small model.
[[nodiscard]] std::vector<std::string> run_options(const Scenario& scenario);

/// Empty: every float of the centre is the latest version of a shard times u, and the version of every shard occurs.
[[nodiscard]] std::string wrong_in(const std::vector<CenterFloat>& center);

}  // namespace troupe::contract
