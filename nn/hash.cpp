#include "nn/hash.hpp"

#include <bit>

#include <fmt/format.h>
#include <xxhash.h>

namespace troupe::nn {

static_assert(std::endian::native == std::endian::little, "files and hashes are defined over little-endian bytes");

std::uint64_t hash64(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hash128_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string center_hash(std::span<const float> canonical) {
  return fmt::format("xxh3:{:016x}", hash64(std::as_bytes(canonical)));
}

}  // namespace troupe::nn
