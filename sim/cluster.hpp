/// The machines that a simulation runs on, as plain numbers: what the cluster file says, resolved for one company.
/// Values; times in nanoseconds, so that hot paths multiply and add. Read from a file by sim/cluster_file.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace troupe::sim {

using HostId = std::uint32_t;

/// A speed as the time that a byte takes; 0: no time at all.
struct PerByte {
  double ns = 0;
  [[nodiscard]] std::int64_t of(std::uint64_t bytes) const noexcept;  ///< ns, rounded
};
[[nodiscard]] PerByte gbit_per_s(double rate) noexcept;  ///< 0: no limit
[[nodiscard]] PerByte gb_per_s(double rate) noexcept;

/// How long a worker of a kind of host computes one step, before stragglers: one of the three, times `factor`.
struct StepTimes {
  double mean_ns = 0;
  double sigma = 0;                   ///< > 0: log-normal with this mean; deviation of the logarithm
  std::vector<double> measured_ns{};  ///< not empty: one of these, drawn with equal chances
  [[nodiscard]] double expected_ns() const noexcept;
};

struct HostKind {
  std::string name;
  std::uint32_t count = 0;
  std::uint32_t devices = 0;       ///< workers that fit on one host
  std::vector<StepTimes> steps{};  ///< of device k of the kind's hosts: k mod size
  double slowdown = 1;
  PerByte memory{};  ///< kernels on a worker's own vectors
  PerByte card{};    ///< network card, each way
};

struct Host {
  std::uint32_t kind = 0;
  PerByte card{};
};

/// Where a worker sits, and how it computes.
struct Place {
  HostId host = 0;
  std::uint32_t kind = 0;
  std::uint32_t device = 0;  ///< among the kind's, from 0
};

struct NetworkSpeed {
  core::Duration latency{0};
  core::Duration per_message{0};  ///< the sender's card is busy so long for every message, beside its bytes
  core::Duration local_latency{0};
  PerByte local{};  ///< bytes within a host; 0: lent in place
};

struct ServerSpeed {
  PerByte memory{};
  core::Duration per_request{0};
};

struct Cluster {
  std::vector<HostKind> kinds;
  std::vector<Host> hosts;      ///< in the order of the kinds
  std::vector<Place> workers;   ///< by rank: hosts are filled one after the other
  std::vector<HostId> servers;  ///< by shard
  NetworkSpeed network{};
  ServerSpeed server{};
};

}  // namespace troupe::sim
