// HostDevice's convolutions and matrix products against double precision. gpu/'s backend is tested on them, so they must be right.
#include "gpu/device/host_products.hpp"

#include <cmath>

#include "tests/gpu/kernels/testing.hpp"
#include "tests/nn/reference_layers.hpp"

namespace troupe::gpu::testing {
namespace {

struct ConvolutionCase {
  std::int64_t channels, height, width, outputs, kernel, stride, padding, groups;
};

/// Channels that fill no tile, several tiles, groups, strides that leave a rest, padding wider than what is left.
constexpr ConvolutionCase kConvolutions[] = {{3, 8, 7, 20, 3, 1, 1, 1},  {20, 9, 9, 18, 3, 2, 1, 1},
                                             {4, 5, 20, 6, 1, 1, 0, 1},  {36, 6, 6, 34, 3, 1, 1, 2},
                                             {3, 13, 13, 8, 5, 3, 2, 1}, {16, 7, 7, 16, 1, 2, 0, 1}};

struct ConvolutionData {
  ConvolutionShape shape;
  nn::Conv2dLayer layer;
  nn::Shape in;
  nn::Shape out;
  explicit ConvolutionData(const ConvolutionCase& c) {
    const auto size = [&](std::int64_t extent) { return (extent + 2 * c.padding - c.kernel) / c.stride + 1; };
    shape = {{2, c.height, c.width, c.channels},
             {2, size(c.height), size(c.width), c.outputs},
             c.kernel,
             c.stride,
             c.padding,
             c.groups};
    layer.outputs = c.outputs;
    layer.kernel = c.kernel;
    layer.stride = c.stride;
    layer.padding = c.padding;
    layer.groups = c.groups;
    in = {c.channels, c.height, c.width};
    out = {c.outputs, shape.output.height, shape.output.width};
  }
  [[nodiscard]] TensorShape weight() const {  // as the images of outputs
    return {shape.output.channels, shape.kernel, shape.kernel, shape.input.channels / shape.groups};
  }
};

TEST(HostConvolution, EachDirectionIsThatOfTheReference) {
  for (const Type type : kTypes)
    for (const ConvolutionCase& each : kConvolutions) {
      const ConvolutionData data(each);
      const ConvolutionShape& s = data.shape;
      const auto x = random_values(type, s.input.size(), 1);
      const auto w = random_values(type, data.weight().size(), 2);
      const auto b = random_values(type, s.output.channels, 3);
      const auto dy = random_values(type, s.output.size(), 4);
      std::vector<double> y(static_cast<std::size_t>(s.output.size())), dx(static_cast<std::size_t>(s.input.size()));
      std::vector<double> dw(w.size()), db(b.size());
      const nn::reference::LayerContext context{data.in, data.out, w, b, {}};
      const auto part = [](auto& all, std::size_t n) {
        return std::span(all).subspan(n * all.size() / 2, all.size() / 2);
      };
      for (std::size_t n = 0; n < 2; ++n) {
        nn::reference::forward(data.layer, context, part(x, n), part(y, n));
        nn::reference::backward(data.layer, context, part(x, n), part(y, n), part(dy, n), part(dx, n), dw, db);
      }
      Tensor device_x(type, to_nhwc(s.input, x));
      Tensor device_w(type, to_nhwc(data.weight(), w));
      Tensor device_dy(type, to_nhwc(s.output, dy));
      Tensor bias(type, b);
      Tensor addend(type, random_values(type, s.output.size(), 5));
      auto expected = to_nhwc(s.output, y);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = std::max(0.0, expected[i] + addend[static_cast<std::int64_t>(i)]);
      const double tolerance = 2 * rounding(type) + 2e-5;
      Tensor device_y(type, s.output.size());
      Convolution call{.direction = Direction::forward,
                       .shape = s,
                       .type = type,
                       .bias = true,
                       .addend = true,
                       .activation = nn::Activation::relu};
      host::convolve(call, {device_x.data(), device_w.data(), device_y.data(), bias.data(), addend.data()});
      expect_near(device_y, expected, tolerance);
      Tensor device_dx(type, s.input.size());
      host::convolve({.direction = Direction::backward_data, .shape = s, .type = type},
                     {device_dx.data(), device_w.data(), device_dy.data(), nullptr, nullptr});
      expect_near(device_dx, to_nhwc(s.input, dx), tolerance);
      Tensor device_dw(Type::fp32, data.weight().size());
      host::convolve(
          {.direction = Direction::backward_weights, .shape = s, .type = type, .weight_gradient = Type::fp32},
          {device_x.data(), device_dw.data(), device_dy.data(), nullptr, nullptr});
      expect_near(device_dw, to_nhwc(data.weight(), dw), 5e-5);
    }
}

TEST(HostConvolution, StatisticsAreOfTheOutputAsItIsStored) {
  for (const Type type : {Type::bf16, Type::fp16})
    for (const ConvolutionCase& each : kConvolutions) {
      const ConvolutionData data(each);
      Tensor x(type, random_values(type, data.shape.input.size(), 1));
      Tensor w(type, random_values(type, data.weight().size(), 2));
      Tensor y(type, data.shape.output.size()), plain(type, data.shape.output.size());
      const std::int64_t outputs = data.shape.output.channels;
      Tensor sum(Type::fp32, std::vector<double>(static_cast<std::size_t>(outputs), std::nan("")));
      Tensor squares = sum;
      Convolution call{.shape = data.shape, .type = type};
      host::convolve(call, {x.data(), w.data(), plain.data()});
      call.statistics = true;
      host::convolve(call, {x.data(), w.data(), y.data(), nullptr, nullptr, static_cast<float*>(sum.data()),
                            static_cast<float*>(squares.data())});
      EXPECT_EQ(y.bits(), plain.bits());
      std::vector<double> want_sum(static_cast<std::size_t>(outputs)), want_squares(want_sum);
      for (std::int64_t i = 0; i < y.size(); ++i) {
        want_sum[static_cast<std::size_t>(i % outputs)] += y[i];
        want_squares[static_cast<std::size_t>(i % outputs)] += y[i] * y[i];
      }
      expect_near(sum, want_sum, 1e-4);
      expect_near(squares, want_squares, 1e-5);
    }
}

TEST(HostMatrix, ProductsWithTransposesBiasAndActivation) {
  for (const Type type : kTypes)
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {5, 17, 9}, {6, 16, 32}, {13, 40, 3}, {7, 10, 100}})
      for (const int transposes : {0, 1, 2, 3}) {
        const bool ta = (transposes & 1) != 0;
        const bool tb = (transposes & 2) != 0;
        Tensor a(type, random_values(type, m * k, 6));
        Tensor b(type, random_values(type, k * n, 7));
        Tensor bias(Type::fp32, random_values(Type::fp32, n, 8));
        Tensor d(Type::fp32, m * n);
        std::vector<double> expected;
        for (std::int64_t r = 0; r < m; ++r)
          for (std::int64_t c = 0; c < n; ++c) {
            double sum = bias[c];
            for (std::int64_t i = 0; i < k; ++i) sum += a[ta ? i * m + r : r * k + i] * b[tb ? c * k + i : i * n + c];
            expected.push_back(sum);
          }
        host::multiply({.m = m,
                        .n = n,
                        .k = k,
                        .transpose_a = ta,
                        .transpose_b = tb,
                        .type = type,
                        .output = Type::fp32,
                        .bias = true},
                       {a.data(), b.data(), d.data(), bias.data()});
        expect_near(d, expected, 1e-5);
      }
}

TEST(HostMatrix, Tf32RoundsTheOperandsToTenBits) {
  Tensor a(Type::fp32,
           std::vector<double>{1 + 0x1p-11, 1 + 0x1p-12});  // a tie goes away from zero; less than half goes down
  Tensor b(Type::fp32, std::vector<double>{1});
  Tensor d(Type::fp32, 2);
  host::multiply({.m = 2, .n = 1, .k = 1, .math = Math::tf32}, {a.data(), b.data(), d.data(), nullptr});
  EXPECT_EQ(d[0], 1 + 0x1p-10);
  EXPECT_EQ(d[1], 1);
}

TEST(ProductNames, NameWhatIsComputed) {
  const Convolution convolution{.shape = {{2, 56, 56, 64}, {2, 56, 56, 64}, 3, 1, 1, 1},
                                .type = Type::bf16,
                                .bias = true,
                                .activation = nn::Activation::relu};
  EXPECT_EQ(to_string(convolution), "forward 64x56x56 3x3 s1 p1 g1 → 64x56x56, batch 2, bf16, bias, relu");
  Convolution summed = convolution;
  summed.bias = false;
  summed.activation = {};
  summed.deterministic = summed.statistics = true;
  EXPECT_EQ(to_string(summed), "forward 64x56x56 3x3 s1 p1 g1 → 64x56x56, batch 2, bf16, deterministic, statistics");
  const MatrixProduct product{
      .m = 2, .n = 10, .k = 500, .transpose_b = true, .type = Type::fp16, .output = Type::fp32, .math = Math::tf32};
  EXPECT_EQ(to_string(product), "2x500 · 500x10ᵀ, fp16 → fp32, tf32");
}

}  // namespace
}  // namespace troupe::gpu::testing
