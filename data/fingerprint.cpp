#include "data/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <xxhash.h>

namespace troupe::data {

namespace {

constexpr std::int64_t kSamples = 1000;
constexpr std::int64_t kStreamedSamples = 100;  // read from files, perhaps over a network

core::Result<std::uint64_t> fingerprint_of(const Dataset& data, std::uint64_t seed) {
  const auto shape = data.shape();
  const std::array<std::int64_t, 5> facts{data.size(), shape.channels, shape.height, shape.width, data.classes()};
  std::uint64_t hash = XXH3_64bits_withSeed(facts.data(), sizeof(facts), seed);
  std::vector<std::uint8_t> bytes;
  const auto samples = std::min(data.streamed() ? kStreamedSamples : kSamples, data.size());
  for (std::int64_t k = 0; k < samples; ++k) {
    const auto label = data.stored(k * data.size() / samples, bytes);
    if (!label && label.error().code != core::Errc::data) return tl::unexpected(label.error());
    if (!label) bytes.clear();  // unreadable everywhere, or another fingerprint; training judges it by data.max_bad
    hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash + static_cast<std::uint64_t>(label.value_or(-1)));
  }
  return hash;
}

}  // namespace

core::Result<std::uint64_t> fingerprint(const Source& source) {
  return fingerprint_of(source.train->dataset(), 0).and_then([&](std::uint64_t hash) {
    return fingerprint_of(source.test->dataset(), hash);
  });
}

core::Result<std::uint64_t> fingerprint(const BatchBuilder& split) { return fingerprint_of(split.dataset(), 0); }

}  // namespace troupe::data
