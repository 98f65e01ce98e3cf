// The inner loops of winograd.hpp, compiled for AVX-512 with bfloat16. Everything but the entry functions has internal linkage, and the only
// inline functions called from elsewhere are intrinsics (see CMakeLists.txt).
#include "cpu/kernels/winograd_avx512.hpp"

namespace troupe::cpu {
namespace {

constexpr int kGroup = 6;       // tiles that are multiplied together: 6 · 4 sums and 4 weights in registers
constexpr int kMostBlocks = 4;  // of 16 outputs that are multiplied together
constexpr std::int64_t kRow = kMostBlocks * kLanes;

void store_narrowed(std::uint16_t* to, __m512 value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrowed(value));
}

/// inputs [position][channel block][tile][16 channels] ← the chunk's transformed tiles.
void transform_chunk(const WinogradTiles& tiles, std::int64_t first, std::int64_t count, std::int64_t chunk,
                     std::uint16_t* inputs) {
  const ConvolutionShape& shape = *tiles.shape;
  const std::int64_t blocks = shape.channels / kLanes;
  const std::int64_t pixels = shape.height * shape.width * kLanes;
  for (std::int64_t block = 0; block < blocks; ++block) {
    Positions positions(shape, first);
    for (std::int64_t t = 0; t < count; ++t, positions.next()) {
      __m512 v[kPositions];
      transform_tile(shape, tiles.x + (positions.at().image * blocks + block) * pixels, positions.at(), v);
      std::uint16_t* to = inputs + (block * chunk + t) * kLanes;
      for (int p = 0; p < kPositions; ++p, to += blocks * chunk * kLanes) store_narrowed(to, v[p]);
    }
  }
}

/// sums [6 tiles][kBlocks · 16 outputs] ← inputs · weights, of one position. inputs [channel block][chunk][16], weights [channel / 2]
/// [kBlocks · 16][2].
template <int kBlocks>
void multiply(const std::uint16_t* inputs, std::int64_t chunk, const std::uint16_t* weights, std::int64_t blocks,
              float* sums) {
  __m512 sum[kGroup][kBlocks];
  for (int t = 0; t < kGroup; ++t)
    for (int b = 0; b < kBlocks; ++b) sum[t][b] = _mm512_setzero_ps();
  for (std::int64_t block = 0; block < blocks; ++block, inputs += chunk * kLanes)
    for (int pair = 0; pair < kLanes / 2; ++pair, weights += kBlocks * 2 * kLanes) {
      __m512bh w[kBlocks];
      for (int b = 0; b < kBlocks; ++b) w[b] = reinterpret_cast<__m512bh>(_mm512_load_si512(weights + b * 2 * kLanes));
      for (int t = 0; t < kGroup; ++t) {
        int two;
        __builtin_memcpy(&two, inputs + t * kLanes + 2 * pair, sizeof two);
        const auto v = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
        for (int b = 0; b < kBlocks; ++b) sum[t][b] = _mm512_dpbf16_ps(sum[t][b], w[b], v);
      }
    }
  for (int t = 0; t < kGroup; ++t)
    for (int b = 0; b < kBlocks; ++b) _mm512_store_ps(sums + t * kRow + b * kLanes, sum[t][b]);
}

using Multiply = void (*)(const std::uint16_t*, std::int64_t, const std::uint16_t*, std::int64_t, float*);
constexpr Multiply kMultiply[kMostBlocks] = {multiply<1>, multiply<2>, multiply<3>, multiply<4>};

/// out[0], out[1] ← Aᵀ in of four vectors.
void transform_sums(const __m512& a, const __m512& b, const __m512& c, const __m512& d, __m512& first, __m512& second) {
  first = _mm512_add_ps(_mm512_add_ps(a, b), c);
  second = _mm512_sub_ps(_mm512_sub_ps(b, c), d);
}

/// Outputs of a chunk, from products [position][tile][64].
void write_outputs(const WinogradTiles& tiles, std::int64_t first, std::int64_t count, std::int64_t chunk,
                   const float* products, std::int64_t first_block, int blocks) {
  const ConvolutionShape& shape = *tiles.shape;
  const std::int64_t all_blocks = shape.outputs / kLanes;
  const std::int64_t pixels = shape.out_height * shape.out_width * kLanes;
  for (int b = 0; b < blocks; ++b) {
    const __m512 bias =
        tiles.bias == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(tiles.bias + (first_block + b) * kLanes);
    Positions positions(shape, first);
    for (std::int64_t t = 0; t < count; ++t, positions.next()) {
      const float* from = products + t * kRow + b * kLanes;
      __m512 m[kPositions];
      for (int p = 0; p < kPositions; ++p) m[p] = _mm512_load_ps(from + p * chunk * kRow);
      __m512 rows[2 * kSide];
      for (int j = 0; j < kSide; ++j)
        transform_sums(m[j], m[kSide + j], m[2 * kSide + j], m[3 * kSide + j], rows[j], rows[kSide + j]);
      const Position& at = positions.at();
      std::uint16_t* to = tiles.y + (at.image * all_blocks + first_block + b) * pixels;
      for (int i = 0; i < 2 && at.y + i < shape.out_height; ++i) {
        const __m512* row = rows + i * kSide;
        __m512 out[2];
        transform_sums(row[0], row[1], row[2], row[3], out[0], out[1]);
        for (int j = 0; j < 2 && at.x + j < shape.out_width; ++j) {
          __m512 y = _mm512_add_ps(out[j], bias);
          if (tiles.relu) y = _mm512_max_ps(_mm512_setzero_ps(), y);  // NaN stays: max returns its second operand
          store_narrowed(to + ((at.y + i) * shape.out_width + at.x + j) * kLanes, y);
        }
      }
    }
  }
}

/// G w Gᵀ of nine vectors.
void transform_weights(const __m512* w, __m512* u) {
  const __m512 half = _mm512_set1_ps(0.5F);
  const auto three = [&](const __m512& a, const __m512& b, const __m512& c, __m512* out, int stride) {
    const __m512 outer = _mm512_mul_ps(half, _mm512_add_ps(a, c));
    const __m512 middle = _mm512_mul_ps(half, b);
    out[0] = a;
    out[stride] = _mm512_add_ps(outer, middle);
    out[2 * stride] = _mm512_sub_ps(outer, middle);
    out[3 * stride] = c;
  };
  __m512 rows[kSide * 3];
  for (int j = 0; j < 3; ++j) three(w[j], w[3 + j], w[6 + j], rows + j, 3);
  for (int i = 0; i < kSide; ++i) three(rows[3 * i], rows[3 * i + 1], rows[3 * i + 2], u + i * kSide, 1);
}

}  // namespace

void winograd_chunk_of(const WinogradTiles& tiles, std::int64_t first, std::int64_t count, float* scratch) noexcept {
  const ConvolutionShape& shape = *tiles.shape;
  const std::int64_t chunk = winograd_chunk(shape);
  const std::int64_t channel_blocks = shape.channels / kLanes;
  const std::int64_t output_blocks = shape.outputs / kLanes;
  auto* inputs = reinterpret_cast<std::uint16_t*>(scratch);
  float* products = scratch + kPositions * chunk * shape.channels / 2;
  transform_chunk(tiles, first, count, chunk, inputs);
  const std::uint16_t* weights = tiles.packed;
  for (std::int64_t block = 0; block < output_blocks; block += kMostBlocks) {
    const auto blocks = static_cast<int>(output_blocks - block < kMostBlocks ? output_blocks - block : kMostBlocks);
    const std::int64_t position_weights = shape.channels * blocks * kLanes;
    for (int p = 0; p < kPositions; ++p, weights += position_weights)
      for (std::int64_t t = 0; t < count; t += kGroup)
        kMultiply[blocks - 1](inputs + (p * channel_blocks * chunk + t) * kLanes, chunk, weights, channel_blocks,
                              products + (p * chunk + t) * kRow);
    write_outputs(tiles, first, count, chunk, products, block, blocks);
  }
}

void winograd_pack_block(const ConvolutionShape& shape, const float* weights, std::uint16_t* packed,
                         std::int64_t outputs, bool rotated) noexcept {
  const std::int64_t channel_blocks = shape.channels / kLanes;
  const std::int64_t output_blocks = shape.outputs / kLanes;
  // The group of output blocks that are multiplied together has the form [position][channel / 2][blocks · 16][2].
  const std::int64_t group = outputs / kMostBlocks * kMostBlocks;
  const std::int64_t blocks = output_blocks - group < kMostBlocks ? output_blocks - group : kMostBlocks;
  std::uint16_t* const to = packed + group * kLanes * shape.channels * kPositions + (outputs - group) * 2 * kLanes;
  const std::int64_t position = shape.channels * blocks * kLanes;
  const std::int64_t pair_row = blocks * 2 * kLanes;
  constexpr std::int64_t kTap = kLanes * kLanes;  // weights of one kernel position: [16 channels][16 outputs]
  for (std::int64_t c = 0; c < channel_blocks; ++c)
    if (!rotated) {
      const float* from = weights + (outputs * channel_blocks + c) * 9 * kTap;
      for (int pair = 0; pair < kLanes / 2; ++pair) {
        __m512 u[2][kPositions];
        for (int k = 0; k < 2; ++k) {
          __m512 w[9];
          for (int tap = 0; tap < 9; ++tap) w[tap] = _mm512_loadu_ps(from + tap * kTap + (2 * pair + k) * kLanes);
          transform_weights(w, u[k]);
        }
        std::uint16_t* at = to + (c * kLanes / 2 + pair) * pair_row;
        for (int p = 0; p < kPositions; ++p, at += position) _mm512_store_si512(at, in_turn(u[0][p], u[1][p]));
      }
    } else {
      // The forward convolution's outputs are the channels here: its lanes become pairs.
      const float* from = weights + (c * output_blocks + outputs) * 9 * kTap;
      for (int o = 0; o < kLanes; ++o) {
        __m512 w[9];
        for (int tap = 0; tap < 9; ++tap) w[8 - tap] = _mm512_loadu_ps(from + tap * kTap + o * kLanes);
        __m512 u[kPositions];
        transform_weights(w, u);
        std::uint16_t* at = to + c * kLanes / 2 * pair_row + 2 * o;
        for (int p = 0; p < kPositions; ++p, at += position) {
          alignas(32) std::uint32_t pairs[kLanes / 2];
          _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), narrowed(u[p]));
          for (int pair = 0; pair < kLanes / 2; ++pair)
            __builtin_memcpy(at + pair * pair_row, &pairs[pair], sizeof pairs[pair]);
        }
      }
    }
}

}  // namespace troupe::cpu
