/// How reductions over rows are cut, so that scratch can be sized before a launch (gpu/kernels/bodies/columns.hpp). Thread rule: plain values.
#pragma once

#include "gpu/kernels/portable.hpp"

namespace troupe::gpu {

/// The chunks of a reduction: enough to fill a large device, each of at least kFewestRows rows.
struct RowChunks {
  std::int64_t rows;
  std::int64_t chunk_rows;
  std::int64_t chunks;

  static constexpr std::int64_t kFewestRows = 128;
  static constexpr std::int64_t kWantedBlocks = 1024;
  static constexpr std::int64_t kBlockColumns = 128;

  [[nodiscard]] static constexpr RowChunks of(std::int64_t rows, std::int64_t columns) {
    const std::int64_t most = ceil_div(kWantedBlocks, ceil_div(columns, kBlockColumns));
    const std::int64_t wanted = larger<std::int64_t>(1, smaller(rows / kFewestRows, most));
    const std::int64_t chunk_rows = larger<std::int64_t>(1, ceil_div(rows, wanted));
    return {rows, chunk_rows, larger<std::int64_t>(1, ceil_div(rows, chunk_rows))};
  }
  [[nodiscard]] TROUPE_HOST_DEVICE constexpr std::int64_t begin(std::int64_t chunk) const { return chunk * chunk_rows; }
  [[nodiscard]] TROUPE_HOST_DEVICE constexpr std::int64_t end(std::int64_t chunk) const {
    return smaller(rows, (chunk + 1) * chunk_rows);
  }
};

}  // namespace troupe::gpu
