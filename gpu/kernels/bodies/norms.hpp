/// Norms and limits over flat float32 vectors. Thread rule: plain values.
#pragma once

#include <cmath>

#include "core/kernels_check.hpp"
#include "gpu/kernels/bodies/flat.hpp"

namespace troupe::gpu {

/// Block body: Σ x² of each chunk of core::kNormChunk floats, in the order of core/kernels_check.hpp: one thread a lane, a warp a chunk.
struct NormChunksBody {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  static constexpr int kLanes = static_cast<int>(core::kNormLanes);
  static constexpr int kChunks = kThreads / kLanes;  // of a block
  static constexpr std::int64_t kChunk = core::kNormChunk;
  struct Shared {
    double lanes[kChunks][kLanes + 1];  // one more: the threads of the second phase touch different banks
  };

  const float* x;
  double* chunks;
  std::int64_t count;

  [[nodiscard]] std::int64_t blocks() const { return ceil_div(ceil_div(count, kChunk), kChunks); }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t block, int thread, Shared& shared) const {
    if (phase == 0) {
      const std::int64_t begin = (block * kChunks + thread / kLanes) * kChunk;
      const std::int64_t end = smaller(count, begin + kChunk);
      double sum = 0;
      TROUPE_OVERLAP
      for (std::int64_t i = begin + thread % kLanes; i < end; i += kLanes)
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      shared.lanes[thread / kLanes][thread % kLanes] = sum;
      return;
    }
    const std::int64_t chunk = block * kChunks + thread;
    if (thread >= kChunks || chunk * kChunk >= count) return;
    double* const lanes = shared.lanes[thread];
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    chunks[chunk] = lanes[0];
  }
};

/// Block body, one block: one thread adds the chunks up in order, so that the bits are the host's.
struct NormTotalBody {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 1;
  static constexpr int kFetched = 8;  // at once, so that loads overlap
  struct Shared {
    char nothing;
  };

  const double* chunks;
  std::int64_t count;  // of chunks
  double* result;

  [[nodiscard]] std::int64_t blocks() const { return 1; }
  TROUPE_HOST_DEVICE void phase(int /*phase*/, std::int64_t /*block*/, int thread, Shared& /*shared*/) const {
    if (thread != 0) return;
    double total = 0;
    std::int64_t i = 0;
    for (; i + kFetched <= count; i += kFetched) {
      double fetched[kFetched];
      TROUPE_UNROLL
      for (int k = 0; k < kFetched; ++k) fetched[k] = chunks[i + k];
      TROUPE_UNROLL
      for (int k = 0; k < kFetched; ++k) total += fetched[k];
    }
    for (; i < count; ++i) total += chunks[i];
    *result = total;
  }
};

/// core::clip's second half. A body for Flat. Every thread works out the factor.
struct LimitNormBody {
  static constexpr int kLanes = kLanesOf<float>;
  float* y;
  const double* squared_norm;
  float norm;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    const double length = ::sqrt(*squared_norm);
    if (!is_finite(length) || !(length > static_cast<double>(norm))) return;
    const auto factor = static_cast<float>(static_cast<double>(norm) / length);
    auto lanes = load<kCount>(y + i);
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) lanes[l] = factor * lanes[l];
    store(y + i, lanes);
  }
};

/// Element body of one index, before AllWithinBody in the same stream.
struct SetFlagBody {
  std::int32_t* flag;
  TROUPE_HOST_DEVICE void operator()(std::int64_t /*index*/) const { *flag = 1; }
};
/// A body for Flat. Threads that find an element outside all write the same 0.
struct AllWithinBody {
  static constexpr int kLanes = kLanesOf<float>;
  const float* x;
  float limit;
  std::int32_t* flag;
  template <int kCount>
  TROUPE_HOST_DEVICE void run(std::int64_t i) const {
    const auto lanes = load<kCount>(x + i);
    bool within = true;
    TROUPE_UNROLL
    for (int l = 0; l < kCount; ++l) within = within && absolute(lanes[l]) <= limit;
    if (!within) *static_cast<volatile std::int32_t*>(flag) = 0;
  }
};

}  // namespace troupe::gpu
