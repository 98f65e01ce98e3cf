/// The machines that a simulation runs on, as plain numbers: what the cluster file says, resolved for one company.
/// Values; times in nanoseconds, so that hot paths multiply and add. Read from a file by sim/cluster/cluster_file.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "transport/exchange/collectives/algorithm.hpp"

namespace troupe::sim {

using core::Duration;
using HostId = std::uint32_t;

/// A speed as the time that a byte takes; 0: no time at all.
struct PerByte {
  double ns = 0;
  [[nodiscard]] std::int64_t of(std::uint64_t bytes) const noexcept;  ///< ns, rounded; at most the end of time
};
[[nodiscard]] PerByte gbit_per_s(double rate) noexcept;  ///< 0: no limit
[[nodiscard]] PerByte gb_per_s(double rate) noexcept;

/// How long a worker of a kind of host computes one step, before stragglers: one of the three, times `factor`.
struct StepTimes {
  double mean_ns = 0;
  bool per_image = false;              ///< mean_ns is a sample's: a step takes as many times as long as its batch
  double sigma = 0;                    ///< > 0: log-normal with this mean; deviation of the logarithm
  std::vector<double> measured_ns{};   ///< not empty: one of these, drawn with equal chances
  std::vector<std::uint64_t> up_to{};  ///< not empty: measured_ns[i] and those before it stand for so many steps
  [[nodiscard]] double expected_ns() const noexcept;
  /// How many steps were measured, and the n-th of them.
  [[nodiscard]] std::uint64_t measured() const noexcept { return up_to.empty() ? measured_ns.size() : up_to.back(); }
  [[nodiscard]] double measured(std::uint64_t nth) const noexcept;
};

struct HostKind {
  std::string name;
  std::uint32_t count = 0;
  std::uint32_t devices = 0;       ///< workers that fit on one host
  std::vector<StepTimes> steps{};  ///< worker w's: w mod size
  double slowdown = 1;
  PerByte memory{};  ///< kernels on a worker's own vectors
  PerByte device{};  ///< link of one device to the others of its host, each way; 0: over the host's memory
};

struct Host {
  std::uint32_t kind = 0;
  PerByte card{};
};

/// Where a worker sits, and how it computes.
struct Place {
  HostId host = 0;
  std::uint32_t kind = 0;
};

struct NetworkSpeed {
  Duration latency{0};
  Duration per_message{0};  ///< the sender's card is busy so long for every message, beside its bytes
  Duration local_latency{0};
  PerByte local{};  ///< bytes within a host; 0: lent in place
};

struct ServerSpeed {
  PerByte memory{};
  Duration per_request{0};
};

/// Steps that take longer now and then.
struct Stragglers {
  double probability = 0;  ///< of each step
  double factor = 1;       ///< as long
};
/// Steps that begin in [from, to) take `factor` times as long.
struct SlowSpell {
  Duration from{0};
  Duration to{0};
  double factor = 1;
  std::vector<std::uint32_t> workers{};  ///< none: all
};

/// A worker's host dies at a moment.
struct Loss {
  std::uint32_t worker = 0;
  Duration at{0};
};
struct FailureModel {
  Duration mean_time{0};  ///< between two of one host, exponential; 0: hosts do not die by themselves
  Duration detection{0};  ///< from a host's death until the company knows
  Duration rejoin{0};     ///< from a host's death until its workers are back; 0: never
  std::vector<Loss> losses{};
};

/// How a group's sums are formed.
using exchange::Algorithm;
using exchange::kAlgorithms;

struct CollectiveSpeed {
  PerByte rate{};     ///< of an algorithm's bytes between ranks; 0: that of card or device
  PerByte sum{};      ///< reading what is summed
  PerByte convert{};  ///< float32 to 16 bits or back, by float32 bytes
  PerByte memory{};   ///< of a host: shm and hierarchical
};

struct Cluster {
  std::vector<HostKind> kinds;
  std::vector<Host> hosts;      ///< in the order of the kinds
  std::vector<Place> workers;   ///< by rank: hosts are filled one after the other
  std::vector<HostId> servers;  ///< by shard
  NetworkSpeed network{};
  ServerSpeed server{};
  Stragglers stragglers{};
  std::vector<SlowSpell> spells{};
  FailureModel failures{};
  std::array<CollectiveSpeed, kAlgorithms> collectives{};  ///< by Algorithm
  int buckets = 1;  ///< that gradients are reduced in while backward goes on; 1: whole, when the step has ended
  double backward = 2.0 / 3;      ///< share of a step; its buckets become ready evenly over it
  bool tensor_by_tensor = false;  ///< collectives: a part per tensor of the model
};

}  // namespace troupe::sim
