/// The checksum of what goes over a wire: XXH3-64, by the widest instructions that the machine has. It tells damage, not an
/// attacker. Thread rule: pure.
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
