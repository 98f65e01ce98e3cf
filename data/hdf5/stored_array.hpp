/// An array in an HDF5 file, and where its bytes are. Plain values, without the HDF5 library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::data {

enum class ElementType : std::uint8_t { u8, i32, i64 };  // little-endian

[[nodiscard]] constexpr std::int64_t bytes_of(ElementType type) noexcept {
  return type == ElementType::u8 ? 1 : type == ElementType::i32 ? 4 : 8;
}

/// What a chunk has gone through on its way into the file.
enum class ChunkFilter : std::uint8_t { shuffle /* of one-byte elements: it changes nothing */, gzip, lzf };

struct StoredArray {
  std::string name;  // path of links from the root, with "/"
  ElementType type = ElementType::u8;
  std::vector<std::int64_t> shape;   // row-major
  std::uint64_t offset = 0;          // contiguous: of its first byte, in the file
  std::vector<std::int64_t> chunk;   // the shape of a chunk; empty: contiguous
  std::vector<ChunkFilter> filters;  // of chunks, in the order in which they were applied; at most one compresses
  bool operator==(const StoredArray&) const = default;
};

/// The arrays of a hickle file.
struct HickleArrays {
  StoredArray images;
  std::optional<StoredArray> labels;
};

}  // namespace troupe::data
