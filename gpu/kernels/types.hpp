/// Element types and shapes of the GPU backend. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::gpu {

/// How the elements of a tensor are stored. Sums are float32 in every case.
enum class Type : std::uint8_t { fp32, bf16, fp16 };

/// How products of float32 elements are computed: exactly, or with 10-bit mantissas on tensor cores.
enum class Math : std::uint8_t { fp32, tf32 };

[[nodiscard]] constexpr std::size_t bytes_of(Type type) noexcept { return type == Type::fp32 ? 4 : 2; }

[[nodiscard]] std::string_view name_of(Type type) noexcept;  ///< "bf16"

/// An activation, [batch, height, width, channels]: channels are innermost. A vector has height and width 1.
struct TensorShape {
  std::int64_t batch = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 0;
  [[nodiscard]] constexpr std::int64_t pixels() const noexcept { return batch * height * width; }
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return pixels() * channels; }
  auto operator<=>(const TensorShape&) const = default;
};

}  // namespace troupe::gpu
