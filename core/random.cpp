#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::core {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;  // golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;  // sqrt(3) − 1
constexpr int kRounds = 10;

/// The purpose is the low byte of its counter word; the rest is the carry of the block number.
constexpr std::uint32_t kBlockCarry = 0x100;

std::uint64_t two_words(Random& random) noexcept {
  const std::uint64_t low = random.bits();
  return low | std::uint64_t{random.bits()} << 32;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t index) noexcept
    : counter_{0, static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(index),
               static_cast<std::uint32_t>(index >> 32)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

std::uint32_t Random::bits() noexcept {
  if (used_ == block_.size()) {
    block_ = philox(counter_, key_);
    if (++counter_[0] == 0) counter_[1] += kBlockCarry;
    used_ = 0;
  }
  return block_[used_++];
}

double Random::uniform() noexcept { return static_cast<double>(two_words(*this) >> 11) * 0x1p-53; }

double Random::uniform(double low, double high) noexcept {
  // Rounding may reach `high`, which is not part of the interval.
  return std::min(low + (high - low) * uniform(), std::nextafter(high, low));
}

double Random::normal() noexcept {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));  // 1 − u is in (0, 1]: the logarithm is finite
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::uint64_t Random::below(std::uint64_t bound) noexcept {
  // Lemire 2019, "Fast random integer generation in an interval": multiply, and reject the few products that would bias.
  __extension__ using Wide = unsigned __int128;
  Wide product = Wide{two_words(*this)} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;  // 2^64 mod bound
    while (static_cast<std::uint64_t>(product) < threshold) product = Wide{two_words(*this)} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace troupe::core
