// The inner loops of row_gradient.hpp, compiled for AVX-512. Everything but the entry function has internal linkage, and the only
// inline functions called from elsewhere are intrinsics (see CMakeLists.txt).
#include <immintrin.h>

#include "cpu/kernels/row_gradient.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr int kRows = 4;     // output positions at a time
constexpr int kVectors = 7;  // of a kernel row at a time: 4 · 7 sums, the rest of 32 registers for operands

/// The operands of a tile; strides in floats.
struct Tile {
  const float* dy;  // [rows, outputs]
  std::int64_t dy_row;
  const float* weights;  // [outputs, vectors · 16], aligned to 64 bytes
  std::int64_t weights_row;
  float* x;  // [rows, vectors · 16], of the last vector only `tail`
  std::int64_t x_row;
  std::int64_t outputs;
  __mmask16 tail;
};

template <int kR, int kV>
void run_tile(const Tile& tile) {
  __m512 sums[kR][kV];
  for (int r = 0; r < kR; ++r)
    for (int v = 0; v < kV; ++v) sums[r][v] = _mm512_setzero_ps();
  const float* weights = tile.weights;
  for (std::int64_t o = 0; o < tile.outputs; ++o, weights += tile.weights_row) {
    __m512 w[kV];
    for (int v = 0; v < kV; ++v) w[v] = _mm512_load_ps(weights + kLanes * v);
    for (int r = 0; r < kR; ++r) {
      const __m512 dy = _mm512_set1_ps(tile.dy[r * tile.dy_row + o]);
      for (int v = 0; v < kV; ++v) sums[r][v] = _mm512_fmadd_ps(dy, w[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kR; ++r) {
    float* x = tile.x + r * tile.x_row;
    for (int v = 0; v + 1 < kV; ++v, x += kLanes) _mm512_storeu_ps(x, _mm512_add_ps(_mm512_loadu_ps(x), sums[r][v]));
    _mm512_mask_storeu_ps(x, tile.tail, _mm512_add_ps(_mm512_maskz_loadu_ps(tile.tail, x), sums[r][kV - 1]));
  }
}

using RunTile = void (*)(const Tile&);

constexpr RunTile kTiles[kRows][kVectors] = {
    {run_tile<1, 1>, run_tile<1, 2>, run_tile<1, 3>, run_tile<1, 4>, run_tile<1, 5>, run_tile<1, 6>, run_tile<1, 7>},
    {run_tile<2, 1>, run_tile<2, 2>, run_tile<2, 3>, run_tile<2, 4>, run_tile<2, 5>, run_tile<2, 6>, run_tile<2, 7>},
    {run_tile<3, 1>, run_tile<3, 2>, run_tile<3, 3>, run_tile<3, 4>, run_tile<3, 5>, run_tile<3, 6>, run_tile<3, 7>},
    {run_tile<4, 1>, run_tile<4, 2>, run_tile<4, 3>, run_tile<4, 4>, run_tile<4, 5>, run_tile<4, 6>, run_tile<4, 7>}};

}  // namespace

void row_gradient_image(const ConvolutionShape& shape, const float* dy, const float* weights, float* x) noexcept {
  const std::int64_t floats = shape.kernel * shape.channels;
  const std::int64_t vectors = (floats + kLanes - 1) / kLanes;
  const std::int64_t chunks = (vectors + kVectors - 1) / kVectors;
  const std::int64_t x_row = (shape.width + 2 * shape.padding) * shape.channels;
  const std::int64_t dy_row = shape.out_width * shape.outputs;
  Tile tile{};
  tile.dy_row = dy_row;
  tile.weights_row = vectors * kLanes;
  tile.x_row = shape.stride * x_row;
  tile.outputs = shape.outputs;
  for (std::int64_t i = 0; i < shape.kernel; ++i)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      // These weights stay in the L1 cache for all output positions.
      const std::int64_t first = chunk * vectors / chunks;
      const std::int64_t count = (chunk + 1) * vectors / chunks - first;
      const std::int64_t left = floats - (first + count - 1) * kLanes;
      tile.tail = left >= kLanes ? __mmask16{0xffff} : static_cast<__mmask16>((1u << left) - 1u);
      tile.weights = weights + i * shape.outputs * tile.weights_row + first * kLanes;
      // A tile takes positions of one column: neighbours in a row overlap in x, so each sum would wait for a store.
      for (std::int64_t y = 0; y < shape.out_height; y += kRows) {
        const std::int64_t rows = shape.out_height - y < kRows ? shape.out_height - y : kRows;
        const RunTile run = kTiles[rows - 1][count - 1];
        for (std::int64_t column = 0; column < shape.out_width; ++column) {
          tile.dy = dy + y * dy_row + column * shape.outputs;
          tile.x = x + (y * shape.stride + i) * x_row + column * shape.stride * shape.channels + first * kLanes;
          run(tile);
        }
      }
    }
}

}  // namespace troupe::cpu
