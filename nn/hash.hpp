/// XXH3 checksums as text, for checkpoints and for comparing two runs. Not a defence against an attacker. Thread rule: pure
/// functions, and a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace troupe::nn {

/// XXH3-64 of the bytes, seed 0.
[[nodiscard]] std::uint64_t hash64(std::span<const std::byte> bytes) noexcept;

/// XXH3-128 of the bytes, seed 0, as 32 lower-case hexadecimal digits, most significant first (xxHash's canonical form).
[[nodiscard]] std::string hash128_hex(std::span<const std::byte> bytes);

/// The same of bytes that come in pieces.
class Hash128 {
 public:
  Hash128();
  ~Hash128();
  Hash128(Hash128&&) noexcept;
  Hash128& operator=(Hash128&&) noexcept;
  void add(std::span<const std::byte> bytes);
  /// Of all bytes so far.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "xxh3:" and the 16 hexadecimal digits of hash64 over the float32 bytes (little-endian) of a model's canonical parameters: equal
/// exactly if two runs ended with the same bits. `summary.json` calls it center_hash.
[[nodiscard]] std::string center_hash(std::span<const float> canonical);

}  // namespace troupe::nn
