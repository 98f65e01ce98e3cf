/// The JSON header of a safetensors file: its strict grammar, and the checksum over the header itself. Used by safetensors.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "nn/checkpoint/safetensors.hpp"

namespace troupe::nn {

inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr std::string_view kHeaderChecksumKey = "xxh3";      ///< over the header with these digits as zeros
inline constexpr std::string_view kTensorChecksumPrefix = "xxh3:";  ///< prefix of the tensor's name: over its bytes
inline constexpr std::size_t kChecksumDigits = 32;

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> data_offsets;  // two
};

struct Header {
  std::vector<HeaderEntry> entries;
  Metadata metadata;  // checksums included
};

/// Exactly {"__metadata__": {string: string, …}, name: {"dtype", "shape", "data_offsets"}, …}: no other keys, no duplicates, no
/// negative integers. Builds only the result, so a hostile header costs at most a few times its length. The error names the problem
/// and the byte near it.
[[nodiscard]] tl::expected<Header, std::string> parse_header(std::string_view json);

/// The position of the header checksum's digits in `head`; npos if there is none.
[[nodiscard]] std::size_t header_checksum_position(std::string_view head) noexcept;

/// XXH3-128 over the head (length and header) with the digits at `position` read as zeros.
[[nodiscard]] std::string header_checksum(std::string_view head, std::size_t position);

/// JSON text of a string; throws nlohmann::json::type_error for invalid UTF-8.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace troupe::nn
