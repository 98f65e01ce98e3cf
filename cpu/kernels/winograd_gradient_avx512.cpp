// The inner loops of the weight gradient of winograd.hpp, compiled for AVX-512 with bfloat16 (see winograd_avx512.cpp).
#include "cpu/kernels/winograd_avx512.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kPairs = kWinogradGradientChunk / 2;
constexpr std::int64_t kPairHalves = 2 * kLanes;  // of 16 channels of two tiles
constexpr int kChannels = 8;                      // that are multiplied together: 8 · 2 sums in registers
constexpr int kTaps = 9;

/// v[position] ← G d Gᵀ of the 2x2 gradients at a tile, those outside of the image zero; returns their sum.
__m512 transform_gradients(const ConvolutionShape& shape, const std::uint16_t* image, const Position& at, __m512* v) {
  __m512 d[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const bool inside = at.y + i < shape.out_height && at.x + j < shape.out_width;
      d[i][j] = inside ? widened(image + ((at.y + i) * shape.out_width + at.x + j) * kLanes) : _mm512_setzero_ps();
    }
  const __m512 half = _mm512_set1_ps(0.5F);
  const auto two = [&](const __m512& a, const __m512& b, __m512* out, int stride) {
    out[0] = a;
    out[stride] = _mm512_mul_ps(half, _mm512_add_ps(a, b));
    out[2 * stride] = _mm512_mul_ps(half, _mm512_sub_ps(a, b));
    out[3 * stride] = b;
  };
  __m512 rows[kSide * 2];
  for (int j = 0; j < 2; ++j) two(d[0][j], d[1][j], rows + j, 2);
  for (int i = 0; i < kSide; ++i) two(rows[2 * i], rows[2 * i + 1], v + i * kSide, 1);
  return _mm512_add_ps(_mm512_add_ps(d[0][0], d[0][1]), _mm512_add_ps(d[1][0], d[1][1]));
}

/// Transforms the chunk's tiles two by two with `transform(image, position, v)`.
template <class Transform>
void transform_pairs(const WinogradGradientTiles& tiles, std::int64_t blocks, std::int64_t block, std::uint16_t* to,
                     Transform&& transform) {
  Positions positions(*tiles.shape, tiles.first);
  std::uint16_t* at = to + block * kPairs * kPairHalves;
  for (std::int64_t t = 0; t < tiles.count; t += 2, at += kPairHalves) {
    __m512 v[2][kPositions];
    transform(positions.at(), v[0]);
    positions.next();
    if (t + 1 < tiles.count) {
      transform(positions.at(), v[1]);
      positions.next();
    } else {
      for (auto& zero : v[1]) zero = _mm512_setzero_ps();
    }
    for (int p = 0; p < kPositions; ++p)
      _mm512_store_si512(at + p * blocks * kPairs * kPairHalves, in_turn(v[0][p], v[1][p]));
  }
}

/// sums [kChannels][kBlocks · 16] ← Σ over pairs of tiles.
template <int kBlocks>
void multiply_pairs(const std::uint16_t* inputs, const std::uint16_t* gradients, std::int64_t pairs, float* sums,
                    std::int64_t block_sums, bool begin) {
  __m512 sum[kChannels][kBlocks];
  for (int c = 0; c < kChannels; ++c)
    for (int b = 0; b < kBlocks; ++b) sum[c][b] = _mm512_setzero_ps();
  for (std::int64_t pair = 0; pair < pairs; ++pair, inputs += kPairHalves, gradients += kPairHalves) {
    __m512bh g[kBlocks];
    for (int b = 0; b < kBlocks; ++b)
      g[b] = reinterpret_cast<__m512bh>(_mm512_load_si512(gradients + b * kPairs * kPairHalves));
    for (int c = 0; c < kChannels; ++c) {
      int two;
      __builtin_memcpy(&two, inputs + 2 * c, sizeof two);
      const auto v = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
      for (int b = 0; b < kBlocks; ++b) sum[c][b] = _mm512_dpbf16_ps(sum[c][b], g[b], v);
    }
  }
  for (int c = 0; c < kChannels; ++c)
    for (int b = 0; b < kBlocks; ++b) {
      float* to = sums + b * block_sums + c * kLanes;
      _mm512_store_ps(to, begin ? sum[c][b] : _mm512_add_ps(_mm512_load_ps(to), sum[c][b]));
    }
}

}  // namespace

void winograd_transform_inputs(const WinogradGradientTiles& tiles, const std::uint16_t* x, std::int64_t block,
                               std::uint16_t* to) noexcept {
  const ConvolutionShape& shape = *tiles.shape;
  const std::int64_t blocks = shape.channels / kLanes;
  const std::int64_t pixels = shape.height * shape.width * kLanes;
  transform_pairs(tiles, blocks, block, to, [&](const Position& at, __m512* v) {
    transform_tile(shape, x + (at.image * blocks + block) * pixels, at, v);
  });
}

void winograd_transform_gradients(const WinogradGradientTiles& tiles, const std::uint16_t* dy, std::int64_t block,
                                  std::uint16_t* to, float* bias_gradient) noexcept {
  const ConvolutionShape& shape = *tiles.shape;
  const std::int64_t blocks = shape.outputs / kLanes;
  const std::int64_t pixels = shape.out_height * shape.out_width * kLanes;
  __m512 sum = _mm512_setzero_ps();
  transform_pairs(tiles, blocks, block, to, [&](const Position& at, __m512* v) {
    sum = _mm512_add_ps(sum, transform_gradients(shape, dy + (at.image * blocks + block) * pixels, at, v));
  });
  if (bias_gradient == nullptr) return;
  float* at = bias_gradient + block * kLanes;
  _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), sum));
}

void winograd_multiply_chunk(const WinogradGradientTiles& tiles, const std::uint16_t* inputs,
                             const std::uint16_t* gradients, std::int64_t block, float* sums, bool begin) noexcept {
  const ConvolutionShape& shape = *tiles.shape;
  const std::int64_t pairs = (tiles.count + 1) / 2;
  const std::int64_t output_blocks = shape.outputs / kLanes;
  const std::int64_t block_sums = shape.channels * kLanes;
  for (std::int64_t o = 0; o < output_blocks; o += 2)
    for (std::int64_t c = 0; c < kLanes; c += kChannels) {
      const std::uint16_t* const from = inputs + block * kPairs * kPairHalves + 2 * c;
      const std::uint16_t* const others = gradients + o * kPairs * kPairHalves;
      float* const to = sums + o * block_sums + (block * kLanes + c) * kLanes;
      if (o + 1 < output_blocks)
        multiply_pairs<2>(from, others, pairs, to, block_sums, begin);
      else
        multiply_pairs<1>(from, others, pairs, to, block_sums, begin);
    }
}

void winograd_write_gradient(const ConvolutionShape& shape, const float* sums, std::int64_t block,
                             float* gradient) noexcept {
  // Aᵀ m A with Aᵀ = [1 1 1 0; 0 1 −1 0; 0 1 1 −1].
  const auto three = [](const __m512& a, const __m512& b, const __m512& c, const __m512& d, __m512* out, int stride) {
    const __m512 both = _mm512_add_ps(b, c);
    out[0] = _mm512_add_ps(a, both);
    out[stride] = _mm512_sub_ps(b, c);
    out[2 * stride] = _mm512_sub_ps(both, d);
  };
  const std::int64_t position = shape.channels * shape.outputs;
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    const float* from = sums + (block * shape.channels + c) * kLanes;
    __m512 m[kPositions];
    for (int p = 0; p < kPositions; ++p) m[p] = _mm512_load_ps(from + p * position);
    __m512 rows[3 * kSide];
    for (int j = 0; j < kSide; ++j) three(m[j], m[kSide + j], m[2 * kSide + j], m[3 * kSide + j], rows + j, kSide);
    __m512 w[kTaps];
    for (int i = 0; i < 3; ++i) {
      const __m512* row = rows + i * kSide;
      three(row[0], row[1], row[2], row[3], w + 3 * i, 1);
    }
    float* to =
        gradient + (block * shape.channels / kLanes + c / kLanes) * kTaps * kLanes * kLanes + c % kLanes * kLanes;
    for (int tap = 0; tap < kTaps; ++tap) _mm512_storeu_ps(to + tap * kLanes * kLanes, w[tap]);
  }
}

}  // namespace troupe::cpu
