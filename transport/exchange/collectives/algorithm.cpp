#include "transport/exchange/collectives/algorithm.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace troupe::exchange {
namespace {

constexpr std::array<std::string_view, kAlgorithms> kNames{"auto", "ar", "asa", "asa16", "ring", "hierarchical", "shm"};

}  // namespace

std::string_view name(Algorithm algorithm) noexcept { return kNames[static_cast<std::size_t>(algorithm)]; }

Algorithm algorithm_of(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Algorithm>(i);
  throw std::out_of_range("no exchange algorithm is called " + std::string(name));
}

}  // namespace troupe::exchange
