/// For replicas that own their optimizer (Replica::owns_optimizer) and can save it: programs of the user's.
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
  /// The optimizer's state. To be called between two steps. The bytes, at most most_own_state(), are opaque; empty: there is no state. Errors
  /// as Replica::step().
  [[nodiscard]] virtual core::Result<std::vector<std::byte>> own_state() = 0;
  /// To be called before the first step, with own_state() of a replica that was compiled with the same options, in this process or another.
  /// With the same arenas this replica then computes what that one would have computed. Errc::io: the state does not fit.
  [[nodiscard]] virtual core::Result<void> set_own_state(std::span<const std::byte> state) = 0;
};

/// Null: `replica` has no optimizer of its own that can be saved.
[[nodiscard]] inline OwnOptimizer* own_optimizer_of(Replica& replica) noexcept {
  return dynamic_cast<OwnOptimizer*>(&replica);
}

}  // namespace troupe::nn
