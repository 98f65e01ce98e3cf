/// The host kernels by instruction set, for differential tests, benchmarks and `troupe doctor`. Other code calls host_kernels().
/// Thread rule: as Kernels.
#pragma once

#include <string_view>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::core {

/// The host kernels for one instruction set. All variants give the same bits.
struct HostVariant {
  std::string_view name;  ///< "avx512", "avx2" or "reference"
  const Kernels* kernels;
};

/// The variants that this CPU supports, fastest first; the last is the reference.
[[nodiscard]] std::vector<HostVariant> host_variants();

}  // namespace troupe::core
