/// The JSON header of a safetensors file: its strict grammar, where the tensors lie, and the checksums. Used by safetensors.cpp and
/// selected_tensors.cpp. Errors are without the file's name: the caller adds it.
#pragma once

#include <cstdint>
#include <optional>
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
inline constexpr std::size_t kLengthBytes = 8;  ///< before the header

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

/// "tensor "name": why".
[[nodiscard]] std::string in_tensor(const std::string& name, const std::string& why);

/// The bytes of a tensor of this shape; none on overflow.
[[nodiscard]] std::optional<std::size_t> tensor_bytes(DType dtype, const std::vector<std::int64_t>& shape) noexcept;

/// The header's length from a file's first kLengthBytes. Error: above kMaxHeaderBytes, or longer than a file of `file_bytes`.
[[nodiscard]] tl::expected<std::size_t, std::string> header_length(Bytes first, std::uint64_t file_bytes);

/// What a header describes.
struct Contents {
  std::vector<TensorView>
      tensors;        // ordered by their data, which lie one behind the other from the first data byte; `data` is empty
  Metadata metadata;  // with the checksums of the tensors
  bool has_checksums = false;  // the header's own is right, and is removed from the metadata
};

/// `head`: length and header. Error: the grammar, tensors that do not cover `data_bytes` exactly, a checksum that is missing or wrong.
[[nodiscard]] tl::expected<Contents, std::string> parse_contents(std::string_view head, std::uint64_t data_bytes,
                                                                 Checksums checksums);

/// Removes the tensor's checksum from the metadata of a file that has checksums; it must be there, and be `found`.
[[nodiscard]] tl::expected<void, std::string> take_checksum(Metadata& metadata, const std::string& tensor,
                                                            const std::string& found);

/// The position of the header checksum's digits in `head`; npos if there is none.
[[nodiscard]] std::size_t header_checksum_position(std::string_view head) noexcept;

/// XXH3-128 over the head (length and header) with the digits at `position` read as zeros.
[[nodiscard]] std::string header_checksum(std::string_view head, std::size_t position);

/// JSON text of a string; throws nlohmann::json::type_error for invalid UTF-8.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace troupe::nn
