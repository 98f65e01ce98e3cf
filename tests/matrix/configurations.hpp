/// The configurations whose numbers must not depend on where their members run, and the runs that are compared.
///
/// Not in the table, because their numbers are random wherever they run:
///   - asynchronous strategies of several workers (easgd, eamsgd, downpour, ssp, gossip, mixed of several groups): the order of their
///     exchanges is random. bsp with backup workers, local_sgd and diloco with a quorum: the set of late workers is random. Their runs are
///     compared with their replays in tests/sim/replay and tests/nodes.
///   - overlap of easgd, eamsgd and downpour: the step after which an answer is applied depends on how long the steps took.
///   - exchange.algorithm = "ar" (the MPI library's all-reduce): the library chooses the order of its sum, and a replay is refused.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tests/matrix/worlds.hpp"

namespace troupe::matrix {

struct Configuration {
  std::string name;
  std::string strategy;
  std::vector<std::string> settings{};  // on top of kBase (worlds.cpp)
  /// Several workers have one hash, too: they take every step together, and sums are in rank order.
  bool several = false;
  /// The centre is on servers: their number and place must not matter.
  bool servers = true;
  /// Compared in every scripts/test; else in `scripts/test --matrix` only.
  bool standard = false;
  /// Number of buckets of the model's gradients: `troupe simulate` needs it as an option.
  int buckets = 1;
  /// Worlds that are compared; empty: all. `why`: the reason for leaving the others out.
  std::vector<World> worlds{};
  std::string why{};
};

[[nodiscard]] const std::vector<Configuration>& configurations();

/// One configuration with a number of members: its hash is the same in all its worlds.
struct Cell {
  const Configuration* configuration = nullptr;
  Members members{};
};

/// "diloco_5x3_dedicated"
[[nodiscard]] std::string name_of(const Cell& cell);
inline void PrintTo(const Cell& cell, std::ostream* out) { *out << name_of(cell); }

/// The standard part: each standard configuration with one worker, and those for several with 2 × 1, 3 × 2 and 5 × 3 members.
/// `all`: every configuration with every number of workers and servers, and servers in either place.
[[nodiscard]] std::vector<Cell> cells(bool all);

}  // namespace troupe::matrix
