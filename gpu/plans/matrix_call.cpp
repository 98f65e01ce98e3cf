#include "gpu/plans/matrix_call.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::gpu {

MatrixCall matrix_call(const MatrixProduct& product) {
  const auto [m, n, k] = std::array{product.m, product.n, product.k};
  if (m < 1 || n < 1 || k < 1) throw std::invalid_argument(fmt::format("no such product: {}", to_string(product)));
  MatrixCall call;
  // The memory of b, [k, n] by rows, is [n, k] by columns.
  call.first = product.transpose_b ? ColumnMatrix{k, n, k, product.type} : ColumnMatrix{n, k, n, product.type};
  call.transpose_first = product.transpose_b;
  call.second = product.transpose_a ? ColumnMatrix{m, k, m, product.type} : ColumnMatrix{k, m, k, product.type};
  call.transpose_second = product.transpose_a;
  call.d = {n, m, n, product.output};
  call.bias = product.bias;
  return call;
}

}  // namespace troupe::gpu
