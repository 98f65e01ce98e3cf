// Pooling, LRN, sums over columns, batch normalisation and the loss, against double precision (tests/nn/reference_*.hpp).
#include <cmath>

#include "gpu/device/host_launch.hpp"
#include "tests/gpu/kernels/testing.hpp"
#include "tests/nn/reference_layers.hpp"

namespace troupe::gpu::testing {
namespace {

/// A layer's forward and backward over a batch in double; tensors are planes.
struct Expected {
  std::vector<double> y;
  std::vector<double> dx;
};
Expected expected_of(const nn::Layer& layer, const TensorShape& in, const TensorShape& out,
                     const std::vector<double>& x, const std::vector<double>& dy) {
  const nn::reference::LayerContext context{
      {in.channels, in.height, in.width}, {out.channels, out.height, out.width}, {}, {}, {}};
  const auto n_in = static_cast<std::size_t>(in.height * in.width * in.channels);
  const auto n_out = static_cast<std::size_t>(out.height * out.width * out.channels);
  Expected result{std::vector<double>(x.size()), std::vector<double>(x.size())};
  result.y.resize(n_out * static_cast<std::size_t>(in.batch));
  for (std::size_t n = 0; n < static_cast<std::size_t>(in.batch); ++n) {
    const auto x_n = std::span(x).subspan(n * n_in, n_in);
    const auto y_n = std::span(result.y).subspan(n * n_out, n_out);
    nn::reference::forward(layer, context, x_n, y_n);
    nn::reference::backward(layer, context, x_n, y_n, std::span(dy).subspan(n * n_out, n_out),
                            std::span(result.dx).subspan(n * n_in, n_in), {}, {});
  }
  return result;
}

constexpr std::int64_t kChannels[] = {1, 3, 8, 16, 20};

TEST(PoolKernels, WindowsOfAllKinds) {
  struct Case {
    std::int64_t height, width, kernel, stride, padding, out_height, out_width;
  };
  const Case cases[] = {{6, 6, 2, 2, 0, 3, 3}, {7, 6, 3, 2, 1, 4, 3}, {7, 7, 3, 2, 0, 3, 3},
                        {5, 5, 3, 1, 1, 5, 5}, {6, 5, 3, 2, 0, 3, 2}, {6, 6, 3, 2, 0, 3, 3} /* hangs over the end */,
                        {4, 4, 1, 2, 0, 2, 2}};
  for (const Type type : kTypes)
    for (const auto kind : {nn::PoolKind::max, nn::PoolKind::average})
      for (const Case& c : cases)
        for (const std::int64_t channels : kChannels) {
          const TensorShape in{2, c.height, c.width, channels};
          const TensorShape out{2, c.out_height, c.out_width, channels};
          const auto x = random_values(type, in.size(), 1);
          const auto dy = random_values(type, out.size(), 2);
          const auto expected = expected_of(nn::PoolLayer{kind, c.kernel, c.stride, c.padding, true}, in, out, x, dy);
          Tensor device_x(type, to_nhwc(in, x));
          Tensor y(type, out.size());
          std::vector<std::int32_t> winners(static_cast<std::size_t>(out.size()) + 4);
          PoolForward call{kind,      device_x.data(),
                           y.data(),  kind == nn::PoolKind::max ? winners.data() : nullptr,
                           in,        out,
                           c.kernel,  c.stride,
                           c.padding, type};
          run(call);
          expect_near(y, to_nhwc(out, expected.y), 2 * rounding(type) + 1e-6);
          Tensor device_dy(type, to_nhwc(out, dy));
          Tensor dx(type, in.size());
          call.x = dx.data();
          call.y = device_dy.data();
          run(PoolBackward{call});
          expect_near(dx, to_nhwc(in, expected.dx), 4 * rounding(type) + 1e-6);
        }
}

TEST(PoolKernels, AdaptiveWindowsEvenAndUneven) {
  for (const Type type : kTypes)
    for (const auto& [extent, size] : {std::array<std::int64_t, 2>{7, 1}, {6, 3}, {7, 3}, {10, 4}, {5, 5}, {2, 3}})
      for (const std::int64_t channels : kChannels) {
        const TensorShape in{2, extent, extent, channels};
        const TensorShape out{2, size, size, channels};
        const auto x = random_values(type, in.size(), 3);
        const auto dy = random_values(type, out.size(), 4);
        const auto expected = expected_of(nn::AdaptiveAveragePoolLayer{size}, in, out, x, dy);
        Tensor device_x(type, to_nhwc(in, x));
        Tensor y(type, out.size());
        run(AdaptivePoolForward{device_x.data(), y.data(), in, out, type});
        expect_near(y, to_nhwc(out, expected.y), 2 * rounding(type) + 1e-6);
        Tensor device_dy(type, to_nhwc(out, dy));
        Tensor dx(type, in.size());
        run(AdaptivePoolBackward{{dx.data(), device_dy.data(), in, out, type}});
        expect_near(dx, to_nhwc(in, expected.dx), 4 * rounding(type) + 2e-6);
      }
}

TEST(LrnKernels, WindowsOfAllSizes) {
  for (const Type type : kTypes)
    for (const std::int64_t size : {1, 3, 5, 7})
      for (const double beta : {0.75, 0.6})
        for (const std::int64_t channels : kChannels) {
          const TensorShape shape{2, 3, 2, channels};
          const nn::LrnLayer layer{size, 0.5, beta, 1.5};
          const auto x = random_values(type, shape.size(), 5);
          const auto dy = random_values(type, shape.size(), 6);
          const auto expected = expected_of(layer, shape, shape, x, dy);
          Tensor device_x(type, to_nhwc(shape, x));
          Tensor y(type, shape.size());
          run(LrnForward{device_x.data(), y.data(), shape, layer, type});
          expect_near(y, to_nhwc(shape, expected.y), 2 * rounding(type) + 1e-6);
          Tensor device_dy(type, to_nhwc(shape, dy));
          Tensor dx(type, shape.size());
          run(LrnBackward{device_x.data(), device_dy.data(), dx.data(), shape, layer, type});
          expect_near(dx, to_nhwc(shape, expected.dx), 2 * rounding(type) + 5e-6);
        }
}

struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
};
constexpr Matrix kMatrices[] = {{1, 1}, {2, 10}, {130, 8}, {5, 300}, {1000, 3}, {3000, 20}, {700, 136}};

TEST(ColumnSumsKernel, SumsOverAllRowsInAnyThreadOrder) {
  for (const Type type : kTypes)
    for (const auto& [rows, columns] : kMatrices) {
      Tensor x(type, random_values(type, rows * columns, 7));
      std::vector<double> expected(static_cast<std::size_t>(columns));
      for (std::int64_t i = 0; i < x.size(); ++i) expected[static_cast<std::size_t>(i % columns)] += x[i];
      Tensor sums(Type::fp32, columns);
      std::vector<float> scratch(column_sums_scratch(rows, columns));
      const ColumnSums call{x.data(), static_cast<float*>(sums.data()), scratch.data(), rows, columns, type};
      run(call);
      expect_near(sums, expected, 2e-5);
      const auto bits = sums.bits();
      host::execute(call, host::ThreadOrder::descending);
      EXPECT_EQ(sums.bits(), bits) << rows << "x" << columns;
    }
}

/// Training and evaluation, with an addend and relu, against the formulas of nn::BatchNormLayer; values far from 0 do not cancel.
TEST(BatchNormKernels, ForwardAndBackwardOfABatch) {
  for (const Type type : kTypes)
    for (const auto& [rows, columns] : kMatrices)
      for (const bool fused : {false, true}) {
        if (rows < 2) continue;
        const auto count = static_cast<std::size_t>(rows * columns);
        const double m = static_cast<double>(rows);
        auto values = random_values(type, rows * columns, 8);
        for (std::size_t i = 0; i < count; ++i) values[i] += type == Type::fp32 && i % 2 == 0 ? 0 : 1;
        if (type == Type::fp32)
          for (double& value : values) value += 100;
        Tensor x(type, values);
        Tensor addend(type, random_values(type, rows * columns, 9));
        Tensor dy(type, random_values(type, rows * columns, 10));
        Tensor weight(Type::fp32, random_values(Type::fp32, columns, 11));
        Tensor bias(Type::fp32, random_values(Type::fp32, columns, 12));
        const auto floats = [](Tensor& tensor) { return static_cast<float*>(tensor.data()); };
        Tensor mean(Type::fp32, columns), deviation(Type::fp32, columns), variance(Type::fp32, columns);
        Tensor running_mean(Type::fp32, std::vector<double>(static_cast<std::size_t>(columns), 0.5));
        Tensor running_variance(Type::fp32, std::vector<double>(static_cast<std::size_t>(columns), 2.0));
        std::vector<float> scratch(batch_norm_scratch(rows, columns));
        BatchStatistics statistics{x.data(),
                                   floats(mean),
                                   floats(deviation),
                                   floats(running_mean),
                                   floats(running_variance),
                                   scratch.data(),
                                   rows,
                                   columns,
                                   1e-3F,
                                   0.25F,
                                   type,
                                   floats(variance)};
        run(statistics);
        const auto first_bits = mean.bits();
        statistics.running_mean = nullptr;
        host::execute(statistics, host::ThreadOrder::descending);
        EXPECT_EQ(mean.bits(), first_bits);
        std::vector<double> mu(static_cast<std::size_t>(columns)), sigma(mu), moved_mean(mu), moved_variance(mu),
            inverse(mu);
        for (std::size_t i = 0; i < count; ++i) mu[i % mu.size()] += x[static_cast<std::int64_t>(i)] / m;
        for (std::size_t i = 0; i < count; ++i)
          sigma[i % mu.size()] += std::pow(x[static_cast<std::int64_t>(i)] - mu[i % mu.size()], 2) / m;
        for (std::size_t c = 0; c < mu.size(); ++c) {
          inverse[c] = 1 / std::sqrt(sigma[c] + 1e-3);
          moved_mean[c] = 0.5 + 0.25 * (mu[c] - 0.5);
          moved_variance[c] = 2.0 + 0.25 * (sigma[c] * m / (m - 1) - 2.0);
        }
        expect_near(mean, mu, 1e-6);
        expect_near(variance, sigma, 2e-5);
        expect_near(deviation, inverse, 2e-4);
        expect_near(running_mean, moved_mean, 1e-6);
        expect_near(running_variance, moved_variance, 2e-5);

        Tensor y(type, rows * columns);
        run(BatchNormForward{x.data(), y.data(), fused ? addend.data() : nullptr, floats(weight), floats(bias),
                             floats(mean), floats(deviation), false, fused, 1e-3F, rows, columns, type});
        std::vector<double> expected(count), g(count), normalised(count);
        for (std::size_t i = 0; i < count; ++i) {
          const auto at = static_cast<std::int64_t>(i);
          const std::size_t c = i % mu.size();
          normalised[i] = (x[at] - mean[static_cast<std::int64_t>(c)]) * deviation[static_cast<std::int64_t>(c)];
          expected[i] = weight[at % columns] * normalised[i] + bias[at % columns] + (fused ? addend[at] : 0);
          if (fused) expected[i] = std::max(0.0, expected[i]);
        }
        expect_near(y, expected, 2 * rounding(type) + 2e-5);

        std::vector<double> dweight(mu.size()), dbias(mu.size());
        for (std::size_t i = 0; i < count; ++i) {
          const auto at = static_cast<std::int64_t>(i);
          g[i] = fused && y[at] <= 0 ? 0 : dy[at];
          dweight[i % mu.size()] += g[i] * normalised[i];
          dbias[i % mu.size()] += g[i];
        }
        Tensor weight_gradient(Type::fp32, columns), bias_gradient(Type::fp32, columns);
        const BatchNormGradients gradients{x.data(),
                                           y.data(),
                                           dy.data(),
                                           floats(mean),
                                           floats(deviation),
                                           floats(weight_gradient),
                                           floats(bias_gradient),
                                           scratch.data(),
                                           fused,
                                           rows,
                                           columns,
                                           type};
        run(gradients);
        expect_near(weight_gradient, dweight, 5e-5 * std::sqrt(m));
        expect_near(bias_gradient, dbias, 5e-5 * std::sqrt(m));

        std::vector<double> dx(count);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t c = i % mu.size();
          const auto at = static_cast<std::int64_t>(c);
          dx[i] = weight[at] * deviation[at] * (g[i] - bias_gradient[at] / m - normalised[i] * weight_gradient[at] / m);
        }
        Tensor daddend(type, rows * columns);
        run(BatchNormBackward{gradients, floats(weight), dy.data(), fused ? daddend.data() : nullptr});
        expect_near(dy, dx, 2 * rounding(type) + 2e-4);  // in place
        if (fused) expect_near(daddend, g, 0);

        Tensor evaluated(type, rows * columns);
        run(BatchNormForward{x.data(), evaluated.data(), nullptr, floats(weight), floats(bias), floats(running_mean),
                             floats(running_variance), true, false, 1e-3F, rows, columns, type});
        for (std::size_t i = 0; i < count; ++i) {
          const auto c = static_cast<std::int64_t>(i % mu.size());
          expected[i] =
              weight[c] * (x[static_cast<std::int64_t>(i)] - running_mean[c]) / std::sqrt(running_variance[c] + 1e-3) +
              bias[c];
        }
        expect_near(evaluated, expected, 2 * rounding(type) + 1e-4);
      }
}

TEST(MoveStatisticsKernel, LeavesRunningValuesAfterABadLabel) {
  const float mean[] = {1, 2};
  const float variance[] = {3, 4};
  float running_mean[] = {0, 0};
  float running_variance[] = {1, 1};
  LossSums sums;
  sums.bad_label = 3;
  run(MoveStatistics{mean, variance, running_mean, running_variance, &sums, 5, 2, 0.5F});
  EXPECT_EQ(running_mean[1], 0);
  EXPECT_EQ(running_variance[1], 1);
  sums.bad_label = -1;
  run(MoveStatistics{mean, variance, running_mean, running_variance, &sums, 5, 2, 0.5F});
  EXPECT_EQ(running_mean[1], 1);
  EXPECT_EQ(running_variance[1], 1 + 0.5F * (4 * 1.25F - 1));  // m / (m − 1) = 5 / 4
}

class LossKernels : public ::testing::TestWithParam<std::tuple<nn::Loss, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(All, LossKernels,
                         ::testing::Combine(::testing::Values(nn::Loss::softmax_cross_entropy, nn::Loss::squared_error),
                                            ::testing::Values(2, 10, 127, 1000)));

TEST_P(LossKernels, LossCountsAndGradientOfABatch) {
  const auto [loss, classes] = GetParam();
  constexpr std::int64_t kRows = 150;  // more than a block has threads
  constexpr std::int64_t kSamples = 147;
  Tensor z(Type::fp32, random_values(Type::fp32, kRows * classes, 13));
  const auto all = z.values();
  std::vector<std::int32_t> labels;
  core::Random random(4, core::Purpose::test, 1);
  for (std::int64_t row = 0; row < kRows; ++row)
    labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes))));
  for (const Type type : kTypes)
    for (const double smoothing : {0.0, 0.1}) {
      if (loss == nn::Loss::squared_error && smoothing > 0) continue;
      double total = 0;
      std::int64_t top1 = 0, top5 = 0;
      std::vector<double> gradient(static_cast<std::size_t>(kRows * classes));
      for (std::int64_t row = 0; row < kSamples; ++row) {
        const auto first = static_cast<std::size_t>(row * classes);
        const auto mine = std::span(all).subspan(first, static_cast<std::size_t>(classes));
        const auto dz = std::span(gradient).subspan(first, static_cast<std::size_t>(classes));
        const std::int32_t label = labels[static_cast<std::size_t>(row)];
        total += nn::reference::loss_and_gradient(loss, mine, label, dz, smoothing);
        std::int64_t rank = 0;
        for (std::int64_t c = 0; c < classes; ++c) {
          const double other = mine[static_cast<std::size_t>(c)];
          const double own = mine[static_cast<std::size_t>(label)];
          rank += other > own || (other == own && c < label) ? 1 : 0;
        }
        top1 += rank == 0 ? 1 : 0;
        top5 += rank < 5 && classes >= 5 ? 1 : 0;
        for (double& value : dz) value *= 0.3 * 16 / static_cast<double>(kRows);
      }
      Tensor dz(type, kRows * classes);
      LossSums sums;
      std::vector<LossSums> row_sums(kRows);
      const std::int64_t samples = kSamples;
      const float loss_scale = 16;
      const LossKernel call{loss,
                            static_cast<const float*>(z.data()),
                            labels.data(),
                            &samples,
                            dz.data(),
                            &sums,
                            row_sums.data(),
                            kRows,
                            classes,
                            smoothing,
                            0.3F,
                            &loss_scale,
                            type};
      run(call);
      EXPECT_NEAR(sums.loss, total / kSamples, 1e-6 * total / kSamples);
      EXPECT_EQ(sums.top1, top1);
      EXPECT_EQ(sums.top5, top5);
      EXPECT_EQ(sums.bad_label, -1);
      expect_near(dz, gradient, 2 * rounding(type) + 1e-7);
      const auto bits = dz.bits();
      const double first_loss = sums.loss;
      host::execute(call, host::ThreadOrder::descending);
      EXPECT_EQ(dz.bits(), bits);
      EXPECT_EQ(sums.loss, first_loss);
    }
}

TEST(LossKernels, BadLabelIsNamedAndCountsNothing) {
  constexpr std::int64_t kRows = 6;
  Tensor z(Type::fp32, random_values(Type::fp32, kRows * 3, 14));
  const std::vector<std::int32_t> labels{0, 1, 3, -1, 2, 7};
  const std::int64_t samples = 5;  // the last bad label is padding
  Tensor dz(Type::fp32, kRows * 3);
  LossSums sums;
  std::vector<LossSums> row_sums(kRows);
  LossKernel call{nn::Loss::softmax_cross_entropy,
                  static_cast<const float*>(z.data()),
                  labels.data(),
                  &samples,
                  dz.data(),
                  &sums,
                  row_sums.data(),
                  kRows,
                  3};
  run(call);
  EXPECT_EQ(sums.bad_label, 2);
  for (const std::int64_t row : {2, 3, 5})
    for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(dz[row * 3 + c], 0);
  const std::int64_t before = 2;
  call.samples = &before;
  call.gradient = nullptr;
  run(call);
  EXPECT_EQ(sums.bad_label, -1);
  EXPECT_TRUE(dz.is_intact());
}

TEST(LossKernels, NanRanksAboveTheLabelsOutput) {
  Tensor z(Type::fp32, std::vector<double>{5, std::nan(""), 1, 0, 0, 0, std::nan(""), 1, 1, 1, 1, 1});
  const std::vector<std::int32_t> labels{0, 0};
  const std::int64_t samples = 2;
  LossSums sums;
  std::vector<LossSums> row_sums(2);
  run(LossKernel{nn::Loss::squared_error, static_cast<const float*>(z.data()), labels.data(), &samples, nullptr, &sums,
                 row_sums.data(), 2, 6});
  EXPECT_EQ(sums.top1, 0);  // the NaN of the first row ranks first; a label's own NaN never hits
  EXPECT_EQ(sums.top5, 1);
}

/// An equal output ranks before the label's if its class does.
TEST(LossKernels, TiesRankByClass) {
  Tensor z(Type::fp32, std::vector<double>(18, 1.0));
  const std::vector<std::int32_t> labels{0, 4, 5};
  const std::int64_t samples = 3;
  LossSums sums;
  std::vector<LossSums> row_sums(3);
  run(LossKernel{nn::Loss::squared_error, static_cast<const float*>(z.data()), labels.data(), &samples, nullptr, &sums,
                 row_sums.data(), 3, 6});
  EXPECT_EQ(sums.top1, 1);
  EXPECT_EQ(sums.top5, 2);
}

}  // namespace
}  // namespace troupe::gpu::testing
