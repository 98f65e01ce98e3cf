#include <algorithm>

#include "gpu/device/host_products.hpp"
#include "gpu/device/host_tiles.hpp"
#include "gpu/kernels/bodies/functions.hpp"

namespace troupe::gpu::host {
namespace {

/// op(a) as [m, k].
std::vector<float> left_operand(const MatrixProduct& product, const void* a) {
  std::vector<float> plain = elements(a, product.type, product.m * product.k, product.math);
  if (!product.transpose_a) return plain;
  std::vector<float> result(plain.size());
  for (std::int64_t row = 0; row < product.m; ++row)
    for (std::int64_t d = 0; d < product.k; ++d)
      result[static_cast<std::size_t>(row * product.k + d)] = plain[static_cast<std::size_t>(d * product.m + row)];
  return result;
}

/// kTileColumns columns of op(b) from `first` on, [k, kTileColumns]; zeros behind the last.
void pack(const MatrixProduct& product, const void* b, std::int64_t first, std::vector<float>& panel) {
  const std::int64_t columns = std::min<std::int64_t>(kTileColumns, product.n - first);
  std::fill(panel.begin(), panel.end(), 0.0F);
  const auto read = [&](std::int64_t d, std::int64_t c) {
    const std::int64_t at = product.transpose_b ? (first + c) * product.k + d : d * product.n + first + c;
    panel[static_cast<std::size_t>(d * kTileColumns + c)] = element(b, product.type, at, product.math);
  };
  if (product.transpose_b) {
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t d = 0; d < product.k; ++d) read(d, c);
  } else {
    for (std::int64_t d = 0; d < product.k; ++d)
      for (std::int64_t c = 0; c < columns; ++c) read(d, c);
  }
}

}  // namespace

float activated(float x, const std::optional<nn::Activation>& activation) noexcept {
  if (!activation) return x;
  switch (*activation) {
    case nn::Activation::relu: return activate<nn::Activation::relu>(x);
    case nn::Activation::sigmoid: return activate<nn::Activation::sigmoid>(x);
    case nn::Activation::tanh: return activate<nn::Activation::tanh>(x);
  }
  return x;
}

void multiply(const MatrixProduct& product, const MatrixOperands& operands) {
  const TileLoops& loops = tile_loops();
  const std::vector<float> left = left_operand(product, operands.a);
  std::vector<float> panel(static_cast<std::size_t>(product.k * kTileColumns));
  const auto row_at = [&](std::int64_t row) { return left.data() + row * product.k; };
  for (std::int64_t first = 0; first < product.n; first += kTileColumns) {
    pack(product, operands.b, first, panel);
    const std::int64_t columns = std::min<std::int64_t>(kTileColumns, product.n - first);
    for (std::int64_t top = 0; top < product.m; top += kTileRows) {
      const std::int64_t rows = std::min<std::int64_t>(kTileRows, product.m - top);
      Tile sums{};
      if (rows == kTileRows) {
        const float* pointers[kTileRows];
        for (int r = 0; r < kTileRows; ++r) pointers[r] = row_at(top + r);
        loops.rows(pointers, product.k, panel.data(), sums);
      } else {
        for (std::int64_t r = 0; r < rows; ++r) loops.row(row_at(top + r), product.k, panel.data(), sums[r]);
      }
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          const float bias = product.bias ? element(operands.bias, product.output, first + c, Math::fp32) : 0.0F;
          set_element(operands.d, product.output, (top + r) * product.n + first + c, sums[r][c] + bias);
        }
    }
  }
}

}  // namespace troupe::gpu::host
