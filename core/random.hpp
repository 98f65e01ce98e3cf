/// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). A stream
/// depends only on (seed, purpose, index), never on a thread, a worker or other streams.
#pragma once

#include <array>
#include <cstdint>

namespace troupe::core {

/// The purpose of a stream. The numbers are part of reproducibility: append new ones, never renumber.
enum class Purpose : std::uint32_t {
  initialise = 1,  ///< index: parameter tensor
  shuffle = 2,     ///< index: epoch
  augment = 3,     ///< index: (epoch << 40) | sample
  dropout = 4,     ///< index: lease; offset by layer
  glyphs = 5,      ///< index: sample
  strategy = 6,    ///< index: (worker << 40) | step
  schedule = 7,    ///< index: free; random schedules of tests and simulation
  test = 8,        ///< index: free
  validation = 9,  ///< index: 0
  sweep = 10,      ///< index: trial
};

/// One Philox block: four 32-bit words from a 128-bit counter and a 64-bit key. Pure.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept;

/// A stream of random numbers. A copy continues at the same position. Not thread-safe. Satisfies UniformRandomBitGenerator, but use
/// the member functions: the distributions of the standard library differ between implementations.
class Random {
 public:
  using result_type = std::uint32_t;
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t index) noexcept;

  [[nodiscard]] std::uint32_t bits() noexcept;
  [[nodiscard]] double uniform() noexcept;                          ///< in [0, 1), 53 bits
  [[nodiscard]] double uniform(double low, double high) noexcept;   ///< in [low, high)
  [[nodiscard]] double normal() noexcept;                           ///< mean 0, deviation 1 (Box-Muller)
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;  ///< in [0, bound), unbiased; bound > 0

  std::uint32_t operator()() noexcept { return bits(); }
  static constexpr std::uint32_t min() noexcept { return 0; }
  static constexpr std::uint32_t max() noexcept { return 0xffffffffu; }

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
};

}  // namespace troupe::core
