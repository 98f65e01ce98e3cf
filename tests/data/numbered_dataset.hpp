/// A data set whose bytes identify their sample.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.hpp"

namespace troupe::data {

/// Pixel p of sample i is (7·i + p) mod 256; its label is i mod 10. Sample `broken` fails like a damaged file.
class NumberedDataset : public Dataset {
 public:
  NumberedDataset(std::int64_t size, ImageShape shape, std::int64_t broken = -1)
      : size_(size), shape_(shape), broken_(broken) {}
  [[nodiscard]] std::string name() const override { return "numbered"; }
  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  [[nodiscard]] ImageShape shape() const noexcept override { return shape_; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return 10; }
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    if (index == broken_)
      return core::fail(core::Errc::data, "numbered.bin: record " + std::to_string(index) + " is damaged");
    for (std::size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<std::uint8_t>(7 * static_cast<std::size_t>(index) + p);
    return static_cast<std::int32_t>(index % 10);
  }

 private:
  std::int64_t size_;
  ImageShape shape_;
  std::int64_t broken_;
};

}  // namespace troupe::data
