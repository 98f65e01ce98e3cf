#include "data/images/jitter.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::data {
namespace {

/// PIL's grey of a colour: 16-bit fixed point.
std::uint8_t grey_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) noexcept {
  return static_cast<std::uint8_t>((red * 19595u + green * 38470u + blue * 7471u + 0x8000u) >> 16);
}

/// from + factor · (to − from), cut to a byte.
std::uint8_t blended(int from, int to, float factor) noexcept {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

void blend_with(std::uint8_t level, float factor, std::span<std::uint8_t> pixels) {
  for (auto& value : pixels) value = blended(level, value, factor);
}

std::uint8_t mean_grey(std::span<const std::uint8_t> pixels) {
  const std::size_t plane = pixels.size() / 3;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < plane; ++i) sum += grey_of(pixels[i], pixels[plane + i], pixels[2 * plane + i]);
  return static_cast<std::uint8_t>(static_cast<double>(sum) / static_cast<double>(std::max<std::size_t>(plane, 1)) +
                                   0.5);
}

void saturate(float factor, std::span<std::uint8_t> pixels) {
  const std::size_t plane = pixels.size() / 3;
  for (std::size_t i = 0; i < plane; ++i) {
    const int grey = grey_of(pixels[i], pixels[plane + i], pixels[2 * plane + i]);
    for (std::size_t c = 0; c < 3; ++c) pixels[c * plane + i] = blended(grey, pixels[c * plane + i], factor);
  }
}

float drawn(double strength, core::Random& random) {
  return static_cast<float>(random.uniform(std::max(0.0, 1 - strength), 1 + strength));
}

}  // namespace

Jitter draw_jitter(const JitterStrength& strength, core::Random& random) {
  Jitter jitter;
  jitter.factors = {drawn(strength.brightness, random), drawn(strength.contrast, random),
                    drawn(strength.saturation, random)};
  std::swap(jitter.order[2], jitter.order[random.below(3)]);
  std::swap(jitter.order[1], jitter.order[random.below(2)]);
  return jitter;
}

void apply_jitter(const Jitter& jitter, std::span<std::uint8_t> pixels) {
  for (const auto step : jitter.order) {
    const float factor = jitter.factors[static_cast<std::size_t>(step)];
    if (factor == 1.0f) continue;
    switch (step) {
      case JitterStep::brightness: blend_with(0, factor, pixels); break;
      case JitterStep::contrast: blend_with(mean_grey(pixels), factor, pixels); break;
      case JitterStep::saturation: saturate(factor, pixels); break;
    }
  }
}

}  // namespace troupe::data
