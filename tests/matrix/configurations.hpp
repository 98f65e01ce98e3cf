/// The configurations whose numbers must not depend on where their members run, and the runs that are compared.
///
/// Not in the table, because chance has a part in their numbers wherever they run:
///   - asynchronous strategies of several workers (easgd, eamsgd, downpour, ssp, gossip, mixed of several groups): whose exchange
///     comes first is chance, and bsp with backup workers, local_sgd and diloco with a quorum: who is late is chance. Their runs are
///     compared with their replays in tests/replay and tests/nodes.
///   - overlap of easgd, eamsgd and downpour: at which step's end an answer is applied depends on how long the step took.
///   - exchange.algorithm = "ar": the order in which the MPI library sums is its own, and a replay is refused.
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
  /// Several workers have one hash, too: they take every step together and sum in rank order.
  bool several = false;
  /// The centre is on servers, so that their number and place might matter.
  bool servers = true;
  /// Compared in every scripts/test; else in `scripts/test --matrix` only.
  bool standard = false;
  /// That the model's gradients come in: the forecast must be told.
  int buckets = 1;
  /// Where it is compared; empty: everywhere. `why` says what keeps it from elsewhere.
  std::vector<World> worlds{};
  std::string why{};
};

[[nodiscard]] const std::vector<Configuration>& configurations();

/// One configuration with so many members: what has one hash in all its worlds.
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
