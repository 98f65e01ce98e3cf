/// The exchange algorithms by name: the values of `exchange.algorithm`. asa: direct reduce-scatter + allgather (Theano-MPI's
/// alltoall-sum-allgather). ar: the MPI library's all-reduce. All: collective.hpp; costs: sim/cluster/collective_costs.hpp. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::exchange {

/// `automatic` is not an algorithm: a run chooses one before its first step (choice.hpp).
enum class Algorithm : std::uint8_t { automatic, ar, asa, asa16, ring, hierarchical, shm };
inline constexpr std::size_t kAlgorithms = 7;

[[nodiscard]] std::string_view name(Algorithm algorithm) noexcept;  ///< "auto", "ar", …
[[nodiscard]] Algorithm algorithm_of(std::string_view name);        ///< std::out_of_range for an unknown name

}  // namespace troupe::exchange
