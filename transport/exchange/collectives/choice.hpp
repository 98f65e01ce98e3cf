/// Which algorithm reduces vectors of which length where a run leaves that to us (`exchange.algorithm = "auto"`): what its own members
/// have measured decides, once, before the first step. Pure.
///
/// In doubt it is asa: it sums in rank order, so that a run over processes has the bits of one process. Another one must take at most
/// kWorthIt of its time: the best of a few rounds scatters by less, and what is gained by less nobody sees beside a step's computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/exchange/collectives/algorithm.hpp"

namespace troupe::exchange {

inline constexpr double kWorthIt = 0.8;

/// One algorithm, at one length.
struct Timing {
  std::size_t floats = 0;
  Algorithm algorithm = Algorithm::asa;
  double seconds = 0;  // of one reduction, at the rank that it took longest
  bool operator==(const Timing&) const = default;
};

/// `algorithm` reduces vectors of up to so many floats; none: of all lengths.
struct Choice {
  std::optional<std::size_t> up_to_floats{};
  Algorithm algorithm = Algorithm::asa;
  bool operator==(const Choice&) const = default;
};

/// What can differ in time over a group like this, asa first; nothing else: there is nothing to choose. `hosts`: by rank, any numbers that
/// tell hosts apart; empty: all on one. `mapped`: members map each other's arenas. Never ar, which sums as a library pleases: nobody
/// could replay it.
[[nodiscard]] std::vector<Algorithm> candidates(std::size_t ranks, std::span<const std::uint32_t> hosts, bool mapped);

/// Ascending: where latency rules, where bandwidth does, and between, as far as vectors of up to `most` floats go. A longer one costs
/// what the longest here does, per float.
[[nodiscard]] std::vector<std::size_t> lengths_to_measure(std::size_t most);

/// Ascending, the last one for all lengths. Between two measured lengths the border is their geometric mean. `timings`: of all
/// candidates at each length; empty: asa.
[[nodiscard]] std::vector<Choice> choose(std::span<const Timing> timings);

/// For people: "asa up to 16384 floats, then ring (4096 floats: asa 0.11 ms, ring 0.19 ms; …)".
[[nodiscard]] std::string describe(std::span<const Choice> choices, std::span<const Timing> timings);

}  // namespace troupe::exchange
