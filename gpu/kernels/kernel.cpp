#include "gpu/kernels/kernel.hpp"

#include "gpu/kernels/row_chunks.hpp"
#include "gpu/kernels/xxh3_shape.hpp"

namespace troupe::gpu {

std::string_view name_of(Type type) noexcept {
  switch (type) {
    case Type::fp32: return "fp32";
    case Type::bf16: return "bf16";
    case Type::fp16: return "fp16";
  }
  return "?";
}

std::size_t column_sums_scratch(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(RowChunks::of(rows, columns).chunks * columns);
}

std::size_t batch_norm_scratch(std::int64_t pixels, std::int64_t channels) {
  return 2 * column_sums_scratch(pixels, channels);  // two values for each channel
}

std::size_t squared_norm_scratch(std::int64_t count) {
  return static_cast<std::size_t>(ceil_div(count, std::int64_t{core::kNormChunk}));
}

std::size_t xxh3_scratch(std::int64_t bytes) {
  return static_cast<std::size_t>(Xxh3Shape::whole_blocks(bytes) * Xxh3Shape::kLanes);
}

}  // namespace troupe::gpu
