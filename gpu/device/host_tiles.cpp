#include "gpu/device/host_tiles.hpp"

#include <cstring>

#include "gpu/kernels/bodies/numbers.hpp"

namespace troupe::gpu::host {
namespace {

/// Eight floats; a CPU without such registers uses smaller ones.
using EightFloats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
constexpr int kEight = 8;
constexpr int kVectors = kTileColumns / kEight;

// Inlined into functions with and without vector instructions: they must not exist on their own.
template <int kRows>
[[gnu::always_inline]] inline void add_rows(const float* const* rows, std::int64_t depth, const float* panel,
                                            float* sums) {
  EightFloats totals[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      totals[r][v] = *reinterpret_cast<const EightFloats*>(sums + r * kTileColumns + v * kEight);
  for (std::int64_t d = 0; d < depth; ++d, panel += kTileColumns) {
    EightFloats columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = *reinterpret_cast<const EightFloats*>(panel + v * kEight);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) totals[r][v] += columns[v] * rows[r][d];
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      *reinterpret_cast<EightFloats*>(sums + r * kTileColumns + v * kEight) = totals[r][v];
}

using OffsetPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

[[gnu::always_inline]] inline void add_outer(const float* a, const float* b,
                                             const std::pair<std::int64_t, std::int64_t>* pairs, std::size_t count,
                                             float* sums) {
  EightFloats totals[kTileRows][kVectors];
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      totals[r][v] = *reinterpret_cast<const EightFloats*>(sums + r * kTileColumns + v * kEight);
  for (std::size_t i = 0; i < count; ++i) {
    const float* const rows = a + pairs[i].first;
    const float* const columns = b + pairs[i].second;
    for (int r = 0; r < kTileRows; ++r)
      for (int v = 0; v < kVectors; ++v)
        totals[r][v] += *reinterpret_cast<const EightFloats*>(columns + v * kEight) * rows[r];
  }
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      *reinterpret_cast<EightFloats*>(sums + r * kTileColumns + v * kEight) = totals[r][v];
}

void rows_plain(const float* const* rows, std::int64_t depth, const float* panel, Tile& sums) {
  add_rows<kTileRows>(rows, depth, panel, &sums[0][0]);
}
void row_plain(const float* row, std::int64_t depth, const float* panel, float* sums) {
  add_rows<1>(&row, depth, panel, sums);
}
void outer_plain(const float* a, const float* b, const OffsetPairs& pairs, Tile& sums) {
  add_outer(a, b, pairs.data(), pairs.size(), &sums[0][0]);
}
[[gnu::target("avx2")]] void rows_avx2(const float* const* rows, std::int64_t depth, const float* panel, Tile& sums) {
  add_rows<kTileRows>(rows, depth, panel, &sums[0][0]);
}
[[gnu::target("avx2")]] void row_avx2(const float* row, std::int64_t depth, const float* panel, float* sums) {
  add_rows<1>(&row, depth, panel, sums);
}
[[gnu::target("avx2")]] void outer_avx2(const float* a, const float* b, const OffsetPairs& pairs, Tile& sums) {
  add_outer(a, b, pairs.data(), pairs.size(), &sums[0][0]);
}

/// The first 13 bits of the mantissa that tf32 leaves out, rounded to nearest, ties away from zero (cvt.rna.tf32).
float to_tf32(float value) {
  const std::uint32_t bits = bits_of(value);
  return is_finite(value) ? as_float((bits + 0x1000) & ~std::uint32_t{0x1fff}) : value;
}

template <class T>
T read(const void* memory, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void write(void* memory, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(memory) + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

const TileLoops& tile_loops() noexcept {
  static constexpr TileLoops kPlain{rows_plain, row_plain, outer_plain};
  static constexpr TileLoops kAvx2{rows_avx2, row_avx2, outer_avx2};
  static const TileLoops& chosen = __builtin_cpu_supports("avx2") ? kAvx2 : kPlain;
  return chosen;
}

float element(const void* memory, Type type, std::int64_t index, Math math) noexcept {
  switch (type) {
    case Type::bf16: return to_float(read<Bf16>(memory, index));
    case Type::fp16: return to_float(read<Fp16>(memory, index));
    case Type::fp32: break;
  }
  const auto value = read<float>(memory, index);
  return math == Math::tf32 ? to_tf32(value) : value;
}

std::vector<float> elements(const void* memory, Type type, std::int64_t count, Math math) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = element(memory, type, i, math);
  return result;
}

void set_element(void* memory, Type type, std::int64_t index, float value) noexcept {
  switch (type) {
    case Type::fp32: return write(memory, index, value);
    case Type::bf16: return write(memory, index, rounded<Bf16>(value));
    case Type::fp16: return write(memory, index, rounded<Fp16>(value));
  }
}

}  // namespace troupe::gpu::host
