/// Colour jitter: brightness, contrast and saturation of an 8-bit RGB picture, as torchvision's ColorJitter on a PIL image computes them
/// (each step rounds down to bytes). Thread rule: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/random.hpp"

namespace troupe::data {

/// How far each factor may lie from 1: a factor is drawn from [max(0, 1 − x), 1 + x]. 0: not changed.
struct JitterStrength {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  [[nodiscard]] bool any() const noexcept { return brightness > 0 || contrast > 0 || saturation > 0; }
};

enum class JitterStep : std::uint8_t { brightness, contrast, saturation };

/// Three factors, and the order in which they are applied.
struct Jitter {
  std::array<JitterStep, 3> order{JitterStep::brightness, JitterStep::contrast, JitterStep::saturation};
  std::array<float, 3> factors{1, 1, 1};  // by JitterStep
};

/// Draws five numbers always, so that one strength does not change the others' factors.
[[nodiscard]] Jitter draw_jitter(const JitterStrength& strength, core::Random& random);

/// In place. `pixels` [3, plane]: red, green, blue. Steps with factor 1 are left out. REQUIRES pixels.size() % 3 == 0.
void apply_jitter(const Jitter& jitter, std::span<std::uint8_t> pixels);

}  // namespace troupe::data
