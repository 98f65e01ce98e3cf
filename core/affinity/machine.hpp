/// The cores of this machine, their caches and their memory. Values; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::core {

/// Logical processors ("cpus") by the operating system's numbers, ascending, each once.
using Cpus = std::vector<unsigned>;

/// "0-3,8". Empty: "none".
[[nodiscard]] std::string to_text(std::span<const unsigned> cpus);

/// The cpus in both.
[[nodiscard]] Cpus common(const Cpus& a, const Cpus& b);

struct Core {
  Cpus cpus;           // its hardware threads
  unsigned cache = 0;  // cores with the same number share their last level of cache
  unsigned node = 0;   // the memory node (NUMA) that is nearest
  bool operator==(const Core&) const = default;
};

struct Machine {
  std::vector<Core> cores;  // neighbours share caches
  bool operator==(const Machine&) const = default;
};

/// "2 memory nodes × 8 cores × 2 hardware threads"; parts of different size as a range: "4-8 cores".
[[nodiscard]] std::string describe(const Machine& machine);

/// The machine that this process runs on, read once: all its cores, also those that the process may not use. Errc::config: this build has
/// no hwloc, which reads it; Errc::io: hwloc could not.
[[nodiscard]] const Result<Machine>& this_machine();

}  // namespace troupe::core
