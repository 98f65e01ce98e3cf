/// The factor of the loss of steps in fp16: small gradients, which fp16 would round to zero, are computed as greater numbers. The factor is a
/// power of two, so that taking it out again loses nothing.
///
/// It begins at 2^16. A step whose gradients are not finite although its loss is halves it, and the replica computes the step again, from the
/// same parameters and statistics: no such step is seen outside of the replica. So nothing is skipped or summed that others do not have, under
/// every strategy, and no such step is a bad update (experiment/bad_updates.hpp) while the factor can still fall. It does not fall below 1:
/// then the step is given out as it is. 2,000 steps in a row with finite gradients double it, up to 2^24. After Micikevicius et al. 2018,
/// "Mixed precision training", section 3.2; there a step that overflows is skipped.
///
/// It depends on the gradients alone, and a replica begins with 2^16. A resumed run has new replicas, and so has its replay. A journal
/// segment that begins in the middle of a run records it (Replica::state_of_steps). Thread rule: a value.
#pragma once

#include <cstdint>

namespace troupe::gpu {

class LossScale {
 public:
  static constexpr std::uint32_t kFirst = 16;  // exponents of 2
  static constexpr std::uint32_t kMost = 24;
  static constexpr std::uint32_t kGoodSteps = 2000;

  [[nodiscard]] float value() const noexcept { return static_cast<float>(std::uint32_t{1} << exponent_); }
  /// The step's gradients were finite.
  void good() noexcept;
  /// They were not. False: it cannot fall.
  [[nodiscard]] bool fall() noexcept;

  /// All of it in one number, never 0.
  [[nodiscard]] std::uint64_t state() const noexcept;
  /// Of another one. Out of range: ignored.
  void set_state(std::uint64_t state) noexcept;

 private:
  std::uint32_t exponent_ = kFirst;
  std::uint32_t good_in_a_row_ = 0;
};

}  // namespace troupe::gpu
