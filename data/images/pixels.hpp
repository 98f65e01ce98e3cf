/// Decoded pictures, and parts of them. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::data {

/// Pixels of a picture: columns times rows.
struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool operator==(const PictureSize&) const = default;
};

/// A rectangle of whole pixels of a picture.
struct PixelBox {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool operator==(const PixelBox&) const = default;
};

/// Pixels in memory: four bytes each (red, green, blue, one unused), row by row. A decoder fills it; memory is kept from one picture to
/// the next. It holds part of a picture, perhaps reduced: `box` is the part that was asked for, in pixels of this buffer, and may begin
/// and end within a pixel.
struct PixelBuffer {
  struct Box {
    double left = 0;
    double top = 0;
    double width = 0;
    double height = 0;
  };
  static constexpr std::int64_t kBytes = 4;  // per pixel

  std::vector<std::uint8_t> bytes;  // at least [size.height, size.width, 4]
  PictureSize size;
  Box box;

  [[nodiscard]] const std::uint8_t* row(std::int64_t y) const noexcept {
    return bytes.data() + static_cast<std::size_t>(y * size.width * kBytes);
  }
  [[nodiscard]] std::uint8_t* row(std::int64_t y) noexcept {
    return bytes.data() + static_cast<std::size_t>(y * size.width * kBytes);
  }
  /// Makes room, and keeps memory that is there. The content is undefined.
  void reshape(PictureSize wanted) {
    size = wanted;
    const auto needed = static_cast<std::size_t>(wanted.width * wanted.height * kBytes);
    if (bytes.size() < needed) bytes.resize(needed);
  }
};

/// Gives back the memory of a huge picture; less is kept for the next one.
template <class T>
void trim(std::vector<T>& memory) {
  constexpr std::size_t kKept = 16 << 20;  // bytes
  if (memory.capacity() * sizeof(T) > kKept) std::vector<T>().swap(memory);
}

}  // namespace troupe::data
