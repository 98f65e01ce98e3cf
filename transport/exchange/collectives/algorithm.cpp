#include "transport/exchange/collectives/algorithm.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace troupe::exchange {
namespace {

constexpr std::array<AlgorithmInfo, kAlgorithms> kRows{{
    {"auto", Algorithm::automatic},
    {"shm", Algorithm::shm, /*in_mapped_memory=*/true},
    {"ar", Algorithm::ar, false, /*in_library=*/true},
    {"asa", Algorithm::asa},
    {"asa16", Algorithm::asa16},
    {"ring", Algorithm::ring},
    {"hierarchical", Algorithm::hierarchical},
    {"nccl", Algorithm::nccl, false, false, /*on_devices=*/true},
}};

}  // namespace

std::span<const AlgorithmInfo> algorithm_infos() noexcept { return kRows; }

const AlgorithmInfo& info(Algorithm algorithm) noexcept {
  return *std::ranges::find(kRows, algorithm, &AlgorithmInfo::algorithm);
}

std::string_view name(Algorithm algorithm) noexcept { return info(algorithm).name; }

Algorithm algorithm_of(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &AlgorithmInfo::name);
  if (row == kRows.end()) throw std::out_of_range("no exchange algorithm is called " + std::string(name));
  return row->algorithm;
}

}  // namespace troupe::exchange
