// The gradients of a batch norm with relu: the sign of its output comes from memory or from its input. Statistics from the sums that a
// convolution left.
#include <array>
#include <cmath>

#include "gpu/device/host_launch.hpp"
#include "tests/gpu/kernels/testing.hpp"

namespace troupe::gpu::testing {
namespace {

/// One chunk and several; channels in accesses of several lanes and of one; less than four pixels.
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> kNormShapes{
    {{3, 8}, {5, 7}, {130, 16}, {700, 64}, {1000, 3}}};

/// A relu without an addend: the same bits whether its sign is read or computed again. Weight 0 and bias 0 give outputs that are 0.
TEST(BatchNormKernels, GradientsOfReluAreTheSameFromInputAndFromOutput) {
  for (const Type type : kTypes)
    for (const auto& [rows, columns] : kNormShapes) {
      Tensor x(type, random_values(type, rows * columns, 8));
      Tensor dy(type, random_values(type, rows * columns, 10));
      auto weights = random_values(Type::fp32, columns, 11);
      auto biases = random_values(Type::fp32, columns, 12);
      for (std::size_t c = 0; c < weights.size(); c += 3) weights[c] = biases[c] = 0;
      Tensor weight(Type::fp32, weights), bias(Type::fp32, biases);
      Tensor mean(Type::fp32, random_values(Type::fp32, columns, 13));
      Tensor deviation(Type::fp32, std::vector<double>(static_cast<std::size_t>(columns), 1.25));
      const auto floats = [](Tensor& tensor) { return static_cast<float*>(tensor.data()); };
      Tensor y(type, rows * columns);
      run(BatchNormForward{x.data(), y.data(), nullptr, floats(weight), floats(bias), floats(mean), floats(deviation),
                           false, true, 1e-3F, rows, columns, type});
      std::vector<float> scratch(batch_norm_scratch(rows, columns));
      std::array<std::vector<std::vector<std::uint8_t>>, 2> bits;
      for (const bool from_input : {false, true}) {
        Tensor weight_gradient(Type::fp32, columns), bias_gradient(Type::fp32, columns), dx(type, rows * columns);
        const BatchNormGradients gradients{.x = x.data(),
                                           .y = from_input ? nullptr : y.data(),
                                           .dy = dy.data(),
                                           .mean = floats(mean),
                                           .inverse_deviation = floats(deviation),
                                           .weight_gradient = floats(weight_gradient),
                                           .bias_gradient = floats(bias_gradient),
                                           .scratch = scratch.data(),
                                           .relu = true,
                                           .pixels = rows,
                                           .channels = columns,
                                           .type = type,
                                           .weight = floats(weight),
                                           .bias = floats(bias)};
        run(gradients);
        run(BatchNormBackward{gradients, floats(weight), dx.data(), nullptr});
        bits[from_input ? 1 : 0] = {weight_gradient.bits(), bias_gradient.bits(), dx.bits()};
      }
      EXPECT_EQ(bits[0], bits[1]) << rows << " x " << columns;
    }
}

/// The statistics that a kernel finds from sums over x [rows, columns].
struct OfSums {
  OfSums(Tensor& x, const std::vector<double>& sums, const std::vector<double>& all_squares)
      : columns(static_cast<std::int64_t>(sums.size())), sum(Type::fp32, sums), squares(Type::fp32, all_squares) {
    const BatchStatistics call{.x = x.data(),
                               .mean = floats(mean),
                               .inverse_deviation = floats(deviation),
                               .running_mean = floats(running_mean),
                               .running_variance = floats(running_variance),
                               .pixels = x.size() / columns,
                               .channels = columns,
                               .epsilon = 1e-3F,
                               .momentum = 0.25F,
                               .type = x.type(),
                               .variance = floats(variance),
                               .sum = floats(sum),
                               .squares = floats(squares)};
    run(call);
    const auto first = std::array{mean.bits(), deviation.bits(), variance.bits()};
    auto again = call;
    again.running_mean = nullptr;
    host::execute(again, host::ThreadOrder::descending);
    EXPECT_EQ((std::array{mean.bits(), deviation.bits(), variance.bits()}), first);
    for (const Tensor* tensor : {&mean, &deviation, &variance, &running_mean, &running_variance})
      EXPECT_TRUE(tensor->is_intact());
  }
  static float* floats(Tensor& tensor) { return static_cast<float*>(tensor.data()); }
  [[nodiscard]] Tensor filled(double value) const {
    return {Type::fp32, std::vector<double>(static_cast<std::size_t>(columns), value)};
  }

  std::int64_t columns;
  Tensor sum, squares;
  Tensor mean{Type::fp32, columns}, deviation{Type::fp32, columns}, variance{Type::fp32, columns};
  Tensor running_mean = filled(0.5), running_variance = filled(2);
};

/// In double precision, of each column: sums, and by a second pass the variance.
struct ColumnStatistics {
  ColumnStatistics(const Tensor& x, std::int64_t columns)
      : sum(static_cast<std::size_t>(columns)), squares(sum), mean(sum), variance(sum) {
    const double m = static_cast<double>(x.size() / columns);
    const auto column = [&](std::int64_t i) { return static_cast<std::size_t>(i % columns); };
    for (std::int64_t i = 0; i < x.size(); ++i) {
      sum[column(i)] += x[i];
      squares[column(i)] += x[i] * x[i];
      mean[column(i)] += x[i] / m;
    }
    for (std::int64_t i = 0; i < x.size(); ++i) variance[column(i)] += std::pow(x[i] - mean[column(i)], 2) / m;
  }
  std::vector<double> sum, squares, mean, variance;
};

TEST(StatisticsOfSums, AreThoseOfThePixels) {
  for (const Type type : kTypes)
    for (const auto& [rows, columns] : kNormShapes) {
      auto values = random_values(type, rows * columns, 8);
      for (std::size_t i = 0; i < values.size(); i += 2) values[i] += 1;  // a mean beside 0
      Tensor x(type, values);
      const ColumnStatistics want(x, columns);
      const OfSums found(x, want.sum, want.squares);
      expect_near(found.mean, want.mean, 1e-6);
      expect_near(found.variance, want.variance, 2e-5);
      const double m = static_cast<double>(rows);
      std::vector<double> inverse, moved_mean, moved_variance;
      for (std::size_t c = 0; c < want.mean.size(); ++c) {
        inverse.push_back(1 / std::sqrt(want.variance[c] + 1e-3));
        moved_mean.push_back(0.5 + 0.25 * (want.mean[c] - 0.5));
        moved_variance.push_back(2.0 + 0.25 * (want.variance[c] * m / (m - 1) - 2.0));
      }
      expect_near(found.deviation, inverse, 2e-4);
      expect_near(found.running_mean, moved_mean, 1e-6);
      expect_near(found.running_variance, moved_variance, 2e-5);
    }
}

/// Sums as an engine leaves them, with an error of 1e-6: of 1000 ± 0.25 they say a variance between −1 and 3.
TEST(StatisticsOfSums, OfAChannelThatHardlyVariesAreReadAgain) {
  for (const Type type : kTypes) {
    constexpr std::int64_t kRows = 777, kColumns = 11;
    const double level = type == Type::bf16 ? 128 : 1000;  // the type's neighbours are 1 or 0.5 apart
    std::vector<double> values;
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const std::int64_t row = i / kColumns, column = i % kColumns;
      const bool varies = column % 3 != 0;
      values.push_back(column == 10 ? static_cast<double>(row % 5) - 1 : level + (varies && row % 2 == 0 ? 1 : 0));
    }
    Tensor x(type, values);
    const ColumnStatistics want(x, kColumns);
    std::vector<double> sum = want.sum, squares = want.squares;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      sum[c] *= c % 2 == 0 ? 1 + 1e-6 : 1 - 1e-6;
      squares[c] *= c % 2 == 0 ? 1 - 1e-6 : 1 + 1e-6;
    }
    const OfSums found(x, sum, squares);
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const auto at = static_cast<std::size_t>(c);
      EXPECT_NEAR(found.mean[c], want.mean[at], 2e-6 * (1 + std::abs(want.mean[at]))) << c;
      EXPECT_NEAR(found.variance[c], want.variance[at], 1e-5) << c << ", " << name_of(type);
    }
  }
}

/// Sums that say something else than x tell which of the two was read.
TEST(StatisticsOfSums, AreReadAgainFrom32DeviationsOn) {
  constexpr std::int64_t kRows = 600;
  Tensor x(Type::fp16, std::vector<double>(kRows * 4, 3.0));
  const auto squares_of = [&](double mean, double variance) { return kRows * (variance + mean * mean); };
  const OfSums found(x, {31.0 * kRows, 33.0 * kRows, 0, -33.0 * kRows},
                     {squares_of(31, 1), squares_of(33, 1), 0, squares_of(33, 1)});
  EXPECT_NEAR(found.mean[0], 31, 1e-4);
  EXPECT_NEAR(found.variance[0], 1, 1e-3) << "31² · 2⁻²⁴ · 3 and a little more";
  EXPECT_NEAR(found.mean[1], 3, 1e-5);
  EXPECT_NEAR(found.variance[1], 0, 1e-4);
  EXPECT_EQ(found.mean[2], 0) << "sums of zeros lose nothing";
  EXPECT_EQ(found.variance[2], 0);
  EXPECT_NEAR(found.mean[3], 3, 1e-5);
}

TEST(StatisticsOfSums, ThatAreNanStayNan) {
  Tensor x(Type::bf16, random_values(Type::bf16, 300 * 3, 8));
  const double nan = std::nan("");
  const OfSums found(x, {nan, 1, 1}, {300, nan, 300});
  for (const std::int64_t c : {0, 1}) {
    EXPECT_TRUE(std::isnan(found.variance[c])) << c;
    EXPECT_TRUE(std::isnan(found.deviation[c])) << c;
  }
  EXPECT_FALSE(std::isnan(found.variance[2]));
}

}  // namespace
}  // namespace troupe::gpu::testing
