/// Objects by index, reused: a steady simulation allocates nothing. References stay valid; a released object keeps its memory until it is
/// taken again. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::sim {

template <class T>
class Pool {
 public:
  /// The object is in the state in which its last user left it.
  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) grow();
    const auto index = free_.back();
    free_.pop_back();
    ++used_;
    return index;
  }
  void release(std::uint32_t index) {
    free_.push_back(index);
    --used_;
  }
  [[nodiscard]] T& operator[](std::uint32_t index) noexcept { return (*chunks_[index / kChunk])[index % kChunk]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const noexcept {
    return (*chunks_[index / kChunk])[index % kChunk];
  }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  void grow() {
    const auto first = static_cast<std::uint32_t>(chunks_.size()) * kChunk;
    chunks_.push_back(std::make_unique<std::array<T, kChunk>>());
    for (std::uint32_t i = kChunk; i > 0; --i) free_.push_back(first + i - 1);
  }

  std::vector<std::unique_ptr<std::array<T, kChunk>>> chunks_;
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

}  // namespace troupe::sim
