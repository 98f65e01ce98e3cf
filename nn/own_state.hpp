/// A replica whose optimizer is its own (Replica::owns_optimizer) and can be saved: a program of the user's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "nn/backend.hpp"

namespace troupe::nn {

/// The most bytes that a replica may keep of its optimizer: 32 vectors of its parameters and some more.
[[nodiscard]] constexpr std::uint64_t most_own_state(std::size_t arena_floats) noexcept {
  return (std::uint64_t{256} << 20) + 32 * sizeof(float) * std::uint64_t{arena_floats};
}

/// Thread rule: as nn::Replica.
class OwnOptimizer {
 public:
  virtual ~OwnOptimizer() = default;
  /// What it keeps, between two steps: bytes that only such a replica reads, at most most_own_state(); none: it keeps nothing. Errors as
  /// Replica::step().
  [[nodiscard]] virtual core::Result<std::vector<std::byte>> own_state() = 0;
  /// Before the first step. `state` is own_state() of a replica of the same options, in this process or another one: with the same arenas
  /// this replica then computes what that one would have. Errc::io: the state does not fit.
  [[nodiscard]] virtual core::Result<void> set_own_state(std::span<const std::byte> state) = 0;
};

/// Null: it has none that can be saved.
[[nodiscard]] inline OwnOptimizer* own_optimizer_of(Replica& replica) noexcept {
  return dynamic_cast<OwnOptimizer*>(&replica);
}

}  // namespace troupe::nn
