/// Chooses the algorithm per vector length for `exchange.algorithm = "auto"`, from times that the run's members measure once, before the
/// first step. Pure.
///
/// The default is asa (direct reduce-scatter + allgather): it sums in rank order, so a run over processes has the same bits as one process.
/// Another algorithm must take at most kWorthIt of asa's time: measurements vary by less, and a smaller gain does not matter.
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

/// One algorithm at one length.
struct Timing {
  std::size_t floats = 0;
  Algorithm algorithm = Algorithm::asa;
  double seconds = 0;  // time of one reduction, at the slowest rank
  bool operator==(const Timing&) const = default;
};

/// `algorithm` reduces vectors of up to `up_to_floats` floats; none: all lengths.
struct Choice {
  std::optional<std::size_t> up_to_floats{};
  Algorithm algorithm = Algorithm::asa;
  bool operator==(const Choice&) const = default;
};

/// The algorithms whose times can differ over such a group, asa first. `hosts`: by rank, numbers that identify hosts; empty: all on one.
/// `mapped`: members map each other's arenas. Never ar (the MPI library's all-reduce): the library chooses the order of the sum, so a run
/// cannot be replayed.
[[nodiscard]] std::vector<Algorithm> candidates(std::size_t ranks, std::span<const std::uint32_t> hosts, bool mapped);

/// Ascending lengths: a latency-bound one, a bandwidth-bound one and lengths between, up to `most` floats. A longer vector costs as much
/// per float as the longest measured one.
[[nodiscard]] std::vector<std::size_t> lengths_to_measure(std::size_t most);

/// Ascending; the last choice is for all greater lengths. The border between two measured lengths is their geometric mean. `timings`: all
/// candidates at each length; empty: asa.
[[nodiscard]] std::vector<Choice> choose(std::span<const Timing> timings);

/// For messages: "asa up to 16384 floats, then ring (4096 floats: asa 0.11 ms, ring 0.19 ms; …)".
[[nodiscard]] std::string describe(std::span<const Choice> choices, std::span<const Timing> timings);

}  // namespace troupe::exchange
