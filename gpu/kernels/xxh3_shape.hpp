/// How XXH3-64 cuts its input, so that scratch can be sized before a launch (gpu/kernels/bodies/checksum.hpp). Thread rule: plain values.
#pragma once

#include <cstdint>

namespace troupe::gpu {

struct Xxh3Shape {
  static constexpr int kLanes = 8;     // 64-bit words of a stripe
  static constexpr int kStripes = 16;  // of a block
  static constexpr std::int64_t kStripe = 64;
  static constexpr std::int64_t kBlock = 1024;
  /// Blocks before the last one, which may be shorter.
  [[nodiscard]] static constexpr std::int64_t whole_blocks(std::int64_t bytes) { return (bytes - 1) / kBlock; }
};

}  // namespace troupe::gpu
