/// The exchange algorithms by name: what `exchange.algorithm` may say. What each does stands in its file here, what it costs in
/// sim/cluster/collective_costs.hpp. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::exchange {

/// `automatic` is none: whoever begins a run chooses one for it.
enum class Algorithm : std::uint8_t { automatic, ar, asa, asa16, ring, hierarchical, shm };
inline constexpr std::size_t kAlgorithms = 7;

[[nodiscard]] std::string_view name(Algorithm algorithm) noexcept;  ///< "auto", "ar", …
[[nodiscard]] Algorithm algorithm_of(std::string_view name);        ///< std::out_of_range for another name

}  // namespace troupe::exchange
