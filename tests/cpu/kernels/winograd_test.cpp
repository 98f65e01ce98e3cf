// Winograd's algorithm in bfloat16 against convolutions in double precision, and as part of a compiled step.
#include "cpu/kernels/winograd.hpp"

#include <omp.h>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "core/half.hpp"
#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using core::HalfKind;

constexpr std::int64_t kLanes = 16;

/// Rounding to bfloat16 before the products makes up to 0.4 % of the results' root mean square.
constexpr double kRounding = 0.008;

/// A tensor [batch, channels, height, width] of numbers that bfloat16 has, and its form nChw16c.
struct Tensor {
  Tensor(std::int64_t batch, std::int64_t channels, std::int64_t height, std::int64_t width)
      : channels(channels),
        height(height),
        width(width),
        values(static_cast<std::size_t>(batch * channels * height * width)) {}
  [[nodiscard]] std::size_t at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>(((n * channels + c) * height + y) * width + x);
  }
  [[nodiscard]] std::size_t blocked_at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>((((n * channels / kLanes + c / kLanes) * height + y) * width + x) * kLanes +
                                    c % kLanes);
  }
  [[nodiscard]] double value(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    return y < 0 || x < 0 || y >= height || x >= width ? 0 : values[at(n, c, y, x)];
  }
  template <class Visit>
  void each(Visit&& visit) const {
    const auto batch = static_cast<std::int64_t>(values.size()) / (channels * height * width);
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t y = 0; y < height; ++y)
          for (std::int64_t x = 0; x < width; ++x) visit(n, c, y, x);
  }
  void draw(std::uint64_t seed) {
    values = random_floats(values.size(), 1, seed);
    for (float& v : values) v = core::from_half(core::to_half(v, HalfKind::bf16), HalfKind::bf16);
  }
  std::int64_t channels, height, width;
  std::vector<float> values;
};

/// Memory of a kernel's argument.
class Argument {
 public:
  explicit Argument(std::size_t floats)
      : buffer_(core::Buffer::allocate(allocator_, core::align_floats(floats)).value()) {}
  explicit Argument(const Tensor& tensor) : Argument((tensor.values.size() + 1) / 2) {
    tensor.each([&](auto n, auto c, auto y, auto x) {
      halves()[tensor.blocked_at(n, c, y, x)] = core::to_half(tensor.values[tensor.at(n, c, y, x)], HalfKind::bf16);
    });
  }
  [[nodiscard]] float* data() { return buffer_.data(); }
  [[nodiscard]] std::uint16_t* halves() { return reinterpret_cast<std::uint16_t*>(buffer_.data()); }
  [[nodiscard]] Tensor as(Tensor tensor) {
    tensor.each([&](auto n, auto c, auto y, auto x) {
      tensor.values[tensor.at(n, c, y, x)] = core::from_half(halves()[tensor.blocked_at(n, c, y, x)], HalfKind::bf16);
    });
    return tensor;
  }

 private:
  core::HostAllocator allocator_;
  core::Buffer buffer_;
};

/// OIhw16i16o.
std::size_t weight_at(const ConvolutionShape& s, std::int64_t o, std::int64_t c, std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>((((o / kLanes * (s.channels / kLanes) + c / kLanes) * 3 + i) * 3 + j) * kLanes *
                                      kLanes +
                                  c % kLanes * kLanes + o % kLanes);
}

double relative(const std::vector<double>& expected, const std::vector<float>& found) {
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    apart += std::pow(found[i] - expected[i], 2);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(apart / norm);
}

class WinogradTiles : public ::testing::TestWithParam<ConvolutionShape> {
 protected:
  void SetUp() override {
    if (!winograd_tiles_available()) GTEST_SKIP() << "this CPU has no AVX-512 with bfloat16";
    ASSERT_TRUE(winograd_tiles_fit(GetParam()));
  }
  const ConvolutionShape& shape = GetParam();
  Tensor x{shape.batch, shape.channels, shape.height, shape.width};
  Tensor y{shape.batch, shape.outputs, shape.out_height, shape.out_width};
  std::vector<float> weights = random_floats(static_cast<std::size_t>(shape.outputs * shape.channels * 9), 0.1, 7);
  std::vector<float> bias = random_floats(static_cast<std::size_t>(shape.outputs), 1, 8);

  [[nodiscard]] double weight(std::int64_t o, std::int64_t c, std::int64_t i, std::int64_t j) const {
    return weights[weight_at(shape, o, c, i, j)];
  }
  /// y of the kernel.
  [[nodiscard]] Tensor forward(bool with_bias, bool relu, int threads) {
    Argument source(x), result(y), master(weights.size()), packed(winograd_packed_floats(shape)),
        scratch(winograd_scratch(shape, threads));
    std::copy(weights.begin(), weights.end(), master.data());
    KernelCall call;
    call.convolution = shape;
    call.data = {master.data(), packed.data()};
    omp_set_num_threads(threads);
    winograd_pack(call, {});
    call.data = {source.data(), packed.data(), with_bias ? bias.data() : nullptr, result.data(), scratch.data()};
    call.fused_relu = relu;
    winograd_convolution(call, {});
    omp_set_num_threads(1);
    return result.as(y);
  }
  [[nodiscard]] Tensor data_gradient(int threads) {
    const ConvolutionShape turned = winograd_data_gradient(shape);
    Argument gradient(y), result(x), master(weights.size()), packed(winograd_packed_floats(turned)),
        scratch(winograd_scratch(turned, threads));
    std::copy(weights.begin(), weights.end(), master.data());
    KernelCall call;
    call.convolution = turned;
    call.data = {master.data(), packed.data()};
    omp_set_num_threads(threads);
    winograd_pack_rotated(call, {});
    call.data = {gradient.data(), packed.data(), nullptr, result.data(), scratch.data()};
    winograd_convolution(call, {});
    omp_set_num_threads(1);
    return result.as(x);
  }
  struct Gradients {
    std::vector<float> weights, bias;
  };
  [[nodiscard]] Gradients weight_gradient(int threads) {
    Argument source(x), gradient(y), result(weights.size()), sums(bias.size()),
        scratch(winograd_gradient_scratch(shape));
    KernelCall call;
    call.convolution = shape;
    call.data = {source.data(), gradient.data(), result.data(), sums.data(), scratch.data()};
    omp_set_num_threads(threads);
    winograd_weight_gradient(call, {});
    omp_set_num_threads(1);
    return {{result.data(), result.data() + weights.size()}, {sums.data(), sums.data() + bias.size()}};
  }
};

TEST_P(WinogradTiles, ForwardIsTheConvolution) {
  x.draw(1);
  for (const bool with_bias : {false, true})
    for (const bool relu : {false, true}) {
      std::vector<double> expected;
      y.each([&](auto n, auto o, auto row, auto column) {
        double sum = with_bias ? bias[static_cast<std::size_t>(o)] : 0;
        for (std::int64_t c = 0; c < shape.channels; ++c)
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
              sum += weight(o, c, i, j) * x.value(n, c, row + i - shape.padding, column + j - shape.padding);
        expected.push_back(relu ? std::max(sum, 0.0) : sum);
      });
      EXPECT_LT(relative(expected, forward(with_bias, relu, 1).values), kRounding);
    }
}

TEST_P(WinogradTiles, DataGradientIsTheTransposedConvolution) {
  y.draw(2);
  std::vector<double> expected;
  x.each([&](auto n, auto c, auto row, auto column) {
    double sum = 0;
    for (std::int64_t o = 0; o < shape.outputs; ++o)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
          sum += weight(o, c, i, j) * y.value(n, o, row - i + shape.padding, column - j + shape.padding);
    expected.push_back(sum);
  });
  EXPECT_LT(relative(expected, data_gradient(1).values), kRounding);
}

TEST_P(WinogradTiles, WeightGradientIsTheSumOverAllPixels) {
  x.draw(1);
  y.draw(2);
  std::vector<double> expected(weights.size()), sums(bias.size());
  for (std::int64_t o = 0; o < shape.outputs; ++o)
    for (std::int64_t c = 0; c < shape.channels; ++c)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          double sum = 0;
          for (std::int64_t n = 0; n < shape.batch; ++n)
            for (std::int64_t row = 0; row < shape.out_height; ++row)
              for (std::int64_t column = 0; column < shape.out_width; ++column)
                sum += y.value(n, o, row, column) * x.value(n, c, row + i - shape.padding, column + j - shape.padding);
          expected[weight_at(shape, o, c, i, j)] = sum;
        }
  y.each(
      [&](auto n, auto o, auto row, auto column) { sums[static_cast<std::size_t>(o)] += y.value(n, o, row, column); });
  const auto found = weight_gradient(1);
  EXPECT_LT(relative(expected, found.weights), kRounding);
  EXPECT_LT(relative(sums, found.bias), 1e-5);
}

TEST_P(WinogradTiles, BitsDoNotDependOnThreads) {
  x.draw(1);
  y.draw(2);
  const auto once = weight_gradient(1);
  const auto thrice = weight_gradient(3);
  EXPECT_EQ(once.weights, thrice.weights);
  EXPECT_EQ(once.bias, thrice.bias);
  EXPECT_EQ(data_gradient(1).values, data_gradient(3).values);
  EXPECT_EQ(forward(true, true, 1).values, forward(true, true, 3).values);
}

ConvolutionShape of(std::int64_t batch, std::int64_t channels, std::int64_t height, std::int64_t width,
                    std::int64_t outputs, std::int64_t padding) {
  return {batch, channels, height, width, outputs, height + 2 * padding - 2, width + 2 * padding - 2, 3, 1, padding};
}

// Odd and even images, one tile, several chunks with a rest, groups of 1 to 4 blocks of outputs and their rests.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTiles,
                         ::testing::Values(of(1, 16, 4, 4, 16, 1), of(2, 32, 7, 9, 48, 1), of(3, 16, 6, 5, 80, 0),
                                           of(5, 64, 14, 13, 32, 1), of(1, 48, 3, 3, 112, 0), of(2, 16, 8, 8, 16, 2)));

TEST(WinogradTilesInASecondStep, ComputeWhatFloat32Does) {
  if (!winograd_tiles_available()) GTEST_SKIP() << "this CPU has no AVX-512 with bfloat16";
  using namespace nn;
  const Graph graph =
      graph_of({16, 15, 14}, {Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}}, ActivationLayer{},
                              Conv2dLayer{.outputs = 48, .kernel = 3, .weight = {}, .bias = false}, BatchNormLayer{},
                              ActivationLayer{}, Conv2dLayer{.outputs = 16, .kernel = 3, .padding = 1, .weight = {}},
                              FlattenLayer{}, LinearLayer{10, {}}});
  std::string names;
  for (const char* layer : {"conv1", "conv2", "conv3"})
    for (const char* direction : {"forward", "backward_weights", "backward_data"})
      if (std::string(layer) != "conv1" || std::string(direction) != "backward_data")
        names +=
            std::string(names.empty() ? "" : ",") + "\"" + layer + "." + direction + "\":\"" + kWinogradTiles + "\"";
  const Plan plan{R"({"backend":"cpu","version":1,"precision":"bf16","activations":"blocked","implementations":{)" +
                  names + "}}"};
  Model full(graph, {.batch = 5});
  Model tiles(graph, {.batch = 5, .precision = Precision::bf16, .plan = &plan});
  EXPECT_NE(tiles.replica->plan().json.find(kWinogradTiles), std::string::npos);
  // The second step reads weights that were packed again.
  for (std::uint64_t lease = 0; lease < 2; ++lease) {
    const auto expected = full.step(lease);
    EXPECT_NEAR(tiles.step(lease).loss, expected.loss, 0.01 * expected.loss);
    const auto gradients = full.canonical_gradients();
    EXPECT_LT(relative({gradients.begin(), gradients.end()}, tiles.canonical_gradients()), 0.06);
    full.momentum_step(lease);
    tiles.momentum_step(lease);
  }
}

}  // namespace
}  // namespace troupe::cpu::testing
