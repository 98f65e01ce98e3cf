/// Measures one exchange among the ranks of a host, and a copy of the vector for comparison: `troupe bench exchange`.
#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "core/kernels.hpp"

namespace troupe::transport {

struct ExchangeBench {
  double ms = 0;         // one exchange: from the time the last rank is ready until the last rank continues
  double gb_per_s = 0;   // memory traffic of all ranks: each float of each arena is read once and written once
  double memcpy_ms = 0;  // every rank copies its vector once, all at the same time
};

/// The `shm` algorithm (transport/exchange/reduce.hpp) among `ranks` threads over arenas of `floats` floats each: the median of `rounds`
/// exchanges and as many copies, alternating. Checks the computed mean: a wrong sum is Errc::internal. Errc::out_of_memory when the arenas
/// do not fit. REQUIRES ranks ≥ 1, floats ≥ 1, rounds ≥ 1.
[[nodiscard]] core::Result<ExchangeBench> run_exchange_bench(const core::Kernels& kernels, int ranks,
                                                             std::size_t floats, int rounds);

/// The same among forked processes over the shm endpoint: arenas are attached, signals are messages without payload. Both times include the
/// signals. Errc::peer_lost when a process ends early, Errc::timeout when a round takes a minute; every process ends in any case. REQUIRES
/// also that the caller has no other thread.
[[nodiscard]] core::Result<ExchangeBench> run_process_exchange_bench(const core::Kernels& kernels, int ranks,
                                                                     std::size_t floats, int rounds);

}  // namespace troupe::transport
