#include "gpu/plans/matrix_call.hpp"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace troupe::gpu {
namespace {

/// Executes a call as a library that stores by columns does.
std::vector<double> by_columns(const MatrixCall& call, const std::vector<double>& first,
                               const std::vector<double>& second, const std::vector<double>& bias) {
  const auto at = [](const std::vector<double>& m, const ColumnMatrix& shape, bool transpose, std::int64_t row,
                     std::int64_t column) {
    if (transpose) std::swap(row, column);
    EXPECT_TRUE(row < shape.rows && column < shape.columns && shape.leading >= shape.rows);
    return m.at(static_cast<std::size_t>(row + column * shape.leading));
  };
  const auto inner = call.transpose_first ? call.first.rows : call.first.columns;
  std::vector<double> d(static_cast<std::size_t>(call.d.leading * call.d.columns));
  for (std::int64_t row = 0; row < call.d.rows; ++row)
    for (std::int64_t column = 0; column < call.d.columns; ++column) {
      double sum = call.bias ? bias.at(static_cast<std::size_t>(row)) : 0;
      for (std::int64_t i = 0; i < inner; ++i)
        sum += at(first, call.first, call.transpose_first, row, i) *
               at(second, call.second, call.transpose_second, i, column);
      d.at(static_cast<std::size_t>(row + column * call.d.leading)) = sum;
    }
  return d;
}

std::vector<double> random_matrix(std::int64_t elements, std::uint64_t index) {
  core::Random random(5, core::Purpose::test, index);
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (double& value : values) value = random.normal();
  return values;
}

TEST(MatrixCall, IsTheProductByRowsForEveryTransposition) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const bool bias_too : {false, true}) {
        MatrixProduct product;
        product.m = 3, product.n = 5, product.k = 4;
        product.transpose_a = transpose_a, product.transpose_b = transpose_b;
        product.bias = bias_too;
        const auto call = matrix_call(product);
        const auto a = random_matrix(product.m * product.k, 1), b = random_matrix(product.k * product.n, 2),
                   bias = random_matrix(product.n, 3);
        const auto d = by_columns(call, b, a, bias);
        for (std::int64_t i = 0; i < product.m; ++i)
          for (std::int64_t j = 0; j < product.n; ++j) {
            double sum = bias_too ? bias[static_cast<std::size_t>(j)] : 0;
            for (std::int64_t l = 0; l < product.k; ++l)
              sum += a.at(static_cast<std::size_t>(transpose_a ? l * product.m + i : i * product.k + l)) *
                     b.at(static_cast<std::size_t>(transpose_b ? j * product.k + l : l * product.n + j));
            EXPECT_NEAR(d.at(static_cast<std::size_t>(i * product.n + j)), sum, 1e-12);
          }
      }
}

TEST(MatrixCall, TypesAreThoseOfTheOperands) {
  MatrixProduct product;
  product.m = product.n = product.k = 8;
  product.type = Type::bf16;
  product.output = Type::fp32;
  const auto call = matrix_call(product);
  EXPECT_EQ(call.first.type, Type::bf16);
  EXPECT_EQ(call.second.type, Type::bf16);
  EXPECT_EQ(call.d.type, Type::fp32);
}

TEST(MatrixCall, AnExtentIsAtLeastOne) {
  MatrixProduct product;
  product.m = product.k = 8;
  product.n = 0;
  EXPECT_THROW((void)matrix_call(product), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::gpu
