/// The host kernels by instruction set: for differential tests, benchmarks and `troupe doctor`. Everyone else calls
/// host_kernels(). Thread rule: as Kernels.
#pragma once

#include <string_view>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::core {

/// One way to run the host kernels on this CPU. All give the same bits.
struct HostVariant {
  std::string_view name;  ///< "avx512", "avx2" or "reference"
  const Kernels* kernels;
};

/// What this CPU runs, fastest first; the last is the reference.
[[nodiscard]] std::vector<HostVariant> host_variants();

}  // namespace troupe::core
