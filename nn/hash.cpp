#include "nn/hash.hpp"

#include <bit>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace troupe::nn {
namespace {

std::string hexadecimal(const XXH128_hash_t& hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

}  // namespace

static_assert(std::endian::native == std::endian::little, "files and hashes are defined over little-endian bytes");

std::uint64_t hash64(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hash128_hex(std::span<const std::byte> bytes) {
  return hexadecimal(XXH3_128bits(bytes.data(), bytes.size()));
}

struct Hash128::State {
  XXH3_state_t* state = XXH3_createState();
  State() {
    if (state == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(state);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(state); }
};

Hash128::Hash128() : state_(std::make_unique<State>()) {}
Hash128::~Hash128() = default;
Hash128::Hash128(Hash128&&) noexcept = default;
Hash128& Hash128::operator=(Hash128&&) noexcept = default;

void Hash128::add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->state, bytes.data(), bytes.size()); }

std::string Hash128::hex() const { return hexadecimal(XXH3_128bits_digest(state_->state)); }

std::string center_hash(std::span<const float> canonical) {
  return fmt::format("xxh3:{:016x}", hash64(std::as_bytes(canonical)));
}

}  // namespace troupe::nn
