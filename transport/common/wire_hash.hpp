/// The checksum of transferred bytes: XXH3-64, with the widest vector instructions of the machine where the build has the
/// dispatcher. It detects damage, not an attacker. Thread rule: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe::transport {

[[nodiscard]] std::uint64_t wire_hash(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] inline std::uint64_t wire_hash(std::string_view text) noexcept {
  return wire_hash(std::as_bytes(std::span(text)));
}

}  // namespace troupe::transport
