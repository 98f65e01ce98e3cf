/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), for TensorBoard's files. One byte at a time from a table: events are small.
/// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::report {

[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

/// Rotated right by 15 bits and offset, so that a checksum over bytes that contain checksums differs from them.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes) noexcept;

}  // namespace troupe::report
