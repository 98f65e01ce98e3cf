/// A MatrixProduct as the call of a library that stores matrices by columns (cuBLASLt), without its headers. Thread rule: plain values and
/// pure functions.
#pragma once

#include <cstdint>

#include "gpu/device/products.hpp"

namespace troupe::gpu {

/// A matrix stored by columns: element (row, column) is at row + column · leading.
struct ColumnMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  Type type = Type::fp32;
};

/// d ← op(first) · op(second) + bias, all by columns; op transposes where asked. bias has one element for each row of d.
/// A matrix by rows is its transpose by columns, so that d = a · b becomes dᵀ = bᵀ · aᵀ: `first` is b's memory, `second` a's.
struct MatrixCall {
  ColumnMatrix first;
  ColumnMatrix second;
  ColumnMatrix d;
  bool transpose_first = false;
  bool transpose_second = false;
  bool bias = false;
};

/// Bug (std::invalid_argument): an extent below 1.
[[nodiscard]] MatrixCall matrix_call(const MatrixProduct& product);

}  // namespace troupe::gpu
