/// The machines of a simulation as plain numbers: the cluster file, resolved for one run. Values; times in nanoseconds, so that hot paths
/// multiply and add. sim/cluster/cluster_file.hpp reads the file.
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

/// A speed as the time per byte; 0: no time.
struct PerByte {
  double ns = 0;
  [[nodiscard]] std::int64_t of(std::uint64_t bytes) const noexcept;  ///< ns, rounded; at most the end of time
};
[[nodiscard]] PerByte gbit_per_s(double rate) noexcept;  ///< 0: no limit
[[nodiscard]] PerByte gb_per_s(double rate) noexcept;

/// Time of one step of a worker on a kind of host, before stragglers. One of three forms: constant, log-normal, measured.
struct StepTimes {
  double mean_ns = 0;
  bool per_image = false;              ///< mean_ns is per sample: a step takes batch · mean_ns
  double sigma = 0;                    ///< > 0: log-normal with mean mean_ns; standard deviation of the logarithm
  std::vector<double> measured_ns{};   ///< not empty: each step draws one of these, all equally likely
  std::vector<std::uint64_t> up_to{};  ///< not empty: cumulative number of steps that measured_ns[0 … i] stand for
  std::uint32_t draws = 1;             ///< measured: a step is the sum of so many draws, one per micro-batch
  [[nodiscard]] double expected_ns() const noexcept;
  /// Number of measured steps, and the n-th of them.
  [[nodiscard]] std::uint64_t measured() const noexcept { return up_to.empty() ? measured_ns.size() : up_to.back(); }
  [[nodiscard]] double measured(std::uint64_t nth) const noexcept;
};

struct HostKind {
  std::string name;
  std::uint32_t count = 0;
  std::uint32_t devices = 0;       ///< workers that fit on one host
  std::vector<StepTimes> steps{};  ///< worker w has entry w mod size
  double slowdown = 1;
  PerByte memory{};  ///< kernels on a worker's own vectors
  PerByte device{};  ///< link between a device and the others of its host, each direction; 0: the host's memory
};

struct Host {
  std::uint32_t kind = 0;
  PerByte card{};
};

/// Host and kind of host of a worker.
struct WorkerPlacement {
  HostId host = 0;
  std::uint32_t kind = 0;
};

struct NetworkSpeed {
  Duration latency{0};
  Duration per_message{0};  ///< time that the sender's card is busy per message, beside its bytes
  Duration local_latency{0};
  PerByte local{};  ///< bytes within a host; 0: memory is lent, not copied
};

struct ServerSpeed {
  PerByte memory{};
  Duration per_request{0};
};

/// Random steps that take longer.
struct Stragglers {
  double probability = 0;  ///< per step
  double factor = 1;       ///< of the step's time
};
/// Steps that begin in [from, to) take `factor` times as long.
struct SlowSpell {
  Duration from{0};
  Duration to{0};
  double factor = 1;
  std::vector<std::uint32_t> workers{};  ///< none: all
};

/// The host of a worker dies at a given time.
struct Loss {
  std::uint32_t worker = 0;
  Duration at{0};
};
struct FailureModel {
  Duration mean_time{0};  ///< between deaths of one host, exponential; 0: no random deaths
  Duration detection{0};  ///< from a host's death until the other members know
  Duration rejoin{0};     ///< from a host's death until its workers return; 0: never
  std::vector<Loss> losses{};
};

/// The reduction algorithms.
using exchange::Algorithm;
using exchange::kAlgorithms;

struct CollectiveSpeed {
  PerByte rate{};     ///< of the bytes between ranks; 0: that of card or device
  PerByte sum{};      ///< reading the summands
  PerByte convert{};  ///< float32 to 16 bits or back, per float32 byte
  PerByte memory{};   ///< of a host, for shm and hierarchical
};

struct Cluster {
  std::vector<HostKind> kinds;
  std::vector<Host> hosts;               ///< in the order of the kinds
  std::vector<WorkerPlacement> workers;  ///< by rank; hosts fill one after the other
  std::vector<HostId> servers;           ///< by shard
  NetworkSpeed network{};
  ServerSpeed server{};
  Stragglers stragglers{};
  std::vector<SlowSpell> spells{};
  FailureModel failures{};
  std::array<CollectiveSpeed, kAlgorithms> collectives{};  ///< by Algorithm
  int buckets = 1;  ///< gradients are reduced in so many parts during the backward pass; 1: whole, after the step
  double backward = 2.0 / 3;      ///< share of a step; buckets become ready evenly over it
  bool tensor_by_tensor = false;  ///< one collective per tensor of the model
};

}  // namespace troupe::sim
