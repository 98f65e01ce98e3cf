/// The exchange algorithms by name: the values of `exchange.algorithm`. asa: direct reduce-scatter + allgather (Theano-MPI's
/// alltoall-sum-allgather). ar: the MPI library's all-reduce; nccl: NCCL's. All: collective.hpp; costs: sim/cluster/collective_costs.hpp. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe::exchange {

/// `automatic` is not an algorithm: a run chooses one before its first step (choice.hpp).
enum class Algorithm : std::uint8_t { automatic, ar, asa, asa16, ring, hierarchical, shm, nccl };
inline constexpr std::size_t kAlgorithms = 8;

/// One row: what an algorithm needs of the endpoint.
struct AlgorithmInfo {
  std::string_view name;  // the value of exchange.algorithm
  Algorithm algorithm;
  bool in_mapped_memory =
      false;                // sums where the numbers are: members must map each other's memory, and nothing is rounded
  bool in_library = false;  // the endpoint's NativeReduction sums
  bool on_devices = false;  // a library of the devices sums (core::DeviceReduction)
  /// Whether a library chooses the order of sums.
  [[nodiscard]] constexpr bool in_unknown_order() const noexcept { return in_library || on_devices; }
};
/// The rows, in the order in which help lists them; "auto" first.
[[nodiscard]] std::span<const AlgorithmInfo> algorithm_infos() noexcept;
[[nodiscard]] const AlgorithmInfo& info(Algorithm algorithm) noexcept;
[[nodiscard]] std::string_view name(Algorithm algorithm) noexcept;  ///< "auto", "ar", …
[[nodiscard]] Algorithm algorithm_of(std::string_view name);        ///< std::out_of_range for an unknown name

}  // namespace troupe::exchange
