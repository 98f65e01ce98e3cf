// Kernels that touch each element once, against a few lines of double precision or against the CPU's functions.
#include <cmath>

#include "core/half.hpp"
#include "data/preprocessing.hpp"
#include "nn/dropout.hpp"
#include "tests/gpu/kernels/testing.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::int64_t kCounts[] = {1, 7, 8, 9, 64, 1003};

TEST(CastKernel, RoundsOnceBetweenAllTypes) {
  for (const Type from : kTypes)
    for (const Type to : kTypes)
      for (const std::int64_t count : kCounts)
        for (const std::int64_t shift : {0, 1}) {
          Tensor x(from, random_values(from, count, 1), shift);
          Tensor y(to, count, shift);
          run(Cast{x.data(), y.data(), from, to, count});
          EXPECT_EQ(y.bits(), Tensor(to, x.values()).bits()) << name_of(from) << " to " << name_of(to);
          EXPECT_TRUE(y.is_intact());
        }
}

TEST(ImagesKernel, ChannelsBecomeInnermostAndMissingOnesAreZero) {
  for (const Type type : kTypes)
    for (const auto& [channels, padded, height, width] : {std::array<std::int64_t, 4>{3, 3, 5, 4},
                                                          {3, 8, 5, 4},
                                                          {1, 1, 6, 6},
                                                          {12, 12, 1, 1},
                                                          {2, 4, 1, 1},
                                                          {8, 16, 3, 2}}) {
      const TensorShape source{2, height, width, channels};
      const TensorShape target{2, height, width, padded};
      const auto planes = random_values(type, source.size(), 2);
      Tensor x(Type::fp32, planes);
      Tensor y(type, target.size());
      run(ImagesToNhwc{static_cast<const float*>(x.data()), y.data(), target, channels, type});
      const auto expected = to_nhwc(source, planes);
      for (std::int64_t pixel = 0; pixel < target.pixels(); ++pixel)
        for (std::int64_t c = 0; c < padded; ++c)
          ASSERT_EQ(y[pixel * padded + c],
                    c < channels ? expected[static_cast<std::size_t>(pixel * channels + c)] : 0.0);
      EXPECT_TRUE(y.is_intact());
    }
}

/// The float32 values are those of data::Preprocess.
TEST(BytesKernel, PreparesImagesAsTheLoaderDoes) {
  const data::ImageShape source{3, 9, 7};
  data::Statistics statistics;
  statistics.channel_mean = {0.4, 0.5, 0.1};
  statistics.channel_deviation = {0.2, 0.3, 0.25};
  core::Random random(3, core::Purpose::test, 0);
  for (std::int64_t i = 0; i < source.size(); ++i) statistics.image_mean.push_back(random.uniform());
  const auto prepared =
      data::Preprocess::create({.mean = data::Mean::image, .normalise = true, .crop = 6, .pad = 2}, source, statistics);
  ASSERT_TRUE(prepared);
  const data::View views[] = {{0, 0, false}, {-2, 3, true}, {5, -2, false}, {1, 1, true}};
  constexpr std::int64_t kBatch = 4;
  const TensorShape target{kBatch, 6, 6, 8};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kBatch * source.size()));
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.bits());
  std::vector<Cut> cuts;
  for (const auto& view : views)
    cuts.push_back({static_cast<std::int32_t>(view.top), static_cast<std::int32_t>(view.left), view.mirrored ? 1 : 0});
  for (const Type type : kTypes) {
    Tensor y(type, target.size());
    run(BytesToNhwc{bytes.data(), y.data(), cuts.data(), prepared->scale().data(), prepared->bias().data(),
                    TensorShape{kBatch, source.height, source.width, source.channels}, target, type});
    EXPECT_TRUE(y.is_intact());
    for (std::int64_t n = 0; n < kBatch; ++n) {
      std::vector<float> out(3 * 6 * 6);
      prepared->apply(std::span(bytes).subspan(static_cast<std::size_t>(n * source.size()), 3 * 9 * 7), views[n], out);
      for (std::int64_t c = 0; c < 8; ++c)
        for (std::int64_t p = 0; p < 36; ++p) {
          const double value = c < 3 ? out[static_cast<std::size_t>(c * 36 + p)] : 0.0F;
          ASSERT_EQ(y[(n * 36 + p) * 8 + c], Tensor(type, std::vector<double>{value})[0]) << n << " " << c << " " << p;
        }
    }
  }
}

double activation(nn::Activation kind, double x) {
  switch (kind) {
    case nn::Activation::relu: return x > 0 ? x : 0;
    case nn::Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case nn::Activation::tanh: return std::tanh(x);
  }
  return 0;
}
double derivative(nn::Activation kind, double y) {
  switch (kind) {
    case nn::Activation::relu: return y > 0 ? 1 : 0;
    case nn::Activation::sigmoid: return y * (1 - y);
    case nn::Activation::tanh: return 1 - y * y;
  }
  return 0;
}

TEST(ActivationKernels, ForwardAndBackwardInPlace) {
  for (const Type type : kTypes)
    for (const auto kind : {nn::Activation::relu, nn::Activation::sigmoid, nn::Activation::tanh})
      for (const std::int64_t count : kCounts)
        for (const std::int64_t shift : {0, 1}) {
          Tensor y(type, random_values(type, count, 4), shift);
          std::vector<double> expected;
          for (const double x : y.values()) expected.push_back(activation(kind, x));
          run(ActivationForward{kind, y.data(), y.data(), count, type});
          expect_near(y, expected, 2 * rounding(type) + 5e-7);
          Tensor gradient(type, random_values(type, count, 5), shift);
          std::vector<double> slopes;
          for (std::int64_t i = 0; i < count; ++i) slopes.push_back(gradient[i] * derivative(kind, y[i]));
          run(ActivationBackward{kind, y.data(), gradient.data(), gradient.data(), count, type});
          expect_near(gradient, slopes, 2 * rounding(type) + 5e-7);
        }
}

TEST(AddUpKernel, AddsUpToEightInPlace) {
  for (const Type type : kTypes)
    for (const int inputs : {1, 2, 8})
      for (const std::int64_t count : kCounts)
        for (const bool relu : {false, true}) {
          std::vector<Tensor> all;
          std::vector<double> expected(static_cast<std::size_t>(count));
          AddUp call;
          for (int k = 0; k < inputs; ++k) {
            all.emplace_back(type, random_values(type, count, static_cast<std::uint64_t>(20 + k)));
            for (std::int64_t i = 0; i < count; ++i) expected[static_cast<std::size_t>(i)] += all.back()[i];
          }
          for (int k = 0; k < inputs; ++k)
            call.x[static_cast<std::size_t>(k)] = all[static_cast<std::size_t>(k)].data();
          if (relu)
            for (double& value : expected) value = std::max(0.0, value);
          call.inputs = inputs;
          call.y = all.back().data();
          call.relu = relu;
          call.count = count;
          call.type = type;
          run(call);
          expect_near(all.back(), expected, 2 * rounding(type) + 1e-6);
        }
}

/// The CPU's mask (nn/dropout.hpp) over the plain order of units, from any first sample on, in vectors and in images.
TEST(DropoutKernel, DropsTheUnitsThatTheCpuDrops) {
  for (const Type type : kTypes)
    for (const TensorShape& shape :
         {TensorShape{3, 1, 1, 64}, TensorShape{3, 1, 1, 7}, TensorShape{2, 3, 5, 16}, TensorShape{2, 3, 5, 3}})
      for (const std::int64_t first : {0, 5}) {
        const DropoutKey key{12345, first};
        const auto planes = random_values(type, shape.size(), 6);
        Tensor x(type, to_nhwc(shape, planes));
        std::vector<float> mask(static_cast<std::size_t>(shape.size()));
        const auto per_sample = static_cast<std::uint64_t>(shape.height * shape.width * shape.channels);
        nn::dropout_mask(99, key.lease, 17, 0.4, mask, static_cast<std::uint64_t>(first) * per_sample);
        std::vector<double> expected;
        for (std::size_t i = 0; i < planes.size(); ++i) expected.push_back(static_cast<float>(planes[i]) * mask[i]);
        run(Dropout{x.data(), x.data(), &key, 99, 17, shape, 0.4, type});
        EXPECT_EQ(x.bits(), Tensor(type, to_nhwc(shape, expected)).bits());
        EXPECT_TRUE(x.is_intact());
      }
}

TEST(CopyChannelsKernel, JoinsAndCutsAtAnyOffset) {
  for (const Type type : kTypes)
    for (const auto& [from_channels, from_first, to_channels, to_first, channels] :
         {std::array<std::int64_t, 5>{16, 0, 24, 8, 16},
          {8, 0, 12, 4, 8},
          {5, 1, 9, 3, 4},
          {7, 0, 7, 0, 7},
          {6, 2, 8, 4, 4},
          {10, 4, 14, 2, 2}}) {
      constexpr std::int64_t kPixels = 13;
      Tensor from(type, random_values(type, kPixels * from_channels, 7));
      Tensor to(type, random_values(type, kPixels * to_channels, 8));
      auto expected = to.values();
      for (std::int64_t p = 0; p < kPixels; ++p)
        for (std::int64_t c = 0; c < channels; ++c)
          expected[static_cast<std::size_t>(p * to_channels + to_first + c)] = from[p * from_channels + from_first + c];
      run(CopyChannels{from.data(), to.data(), from_channels, from_first, to_channels, to_first, channels, kPixels,
                       type});
      EXPECT_EQ(to.values(), expected);
      EXPECT_TRUE(to.is_intact());
    }
}

TEST(TransposeKernel, SwapsRowsAndColumnsOfEachMatrix) {
  for (const Type type : kTypes)
    for (const auto& [batch, rows, columns] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {2, 5, 3}, {3, 32, 32}, {2, 33, 70}, {1, 1, 100}, {2, 49, 12}}) {
      Tensor from(type, random_values(type, batch * rows * columns, 9));
      Tensor to(type, from.size());
      run(Transpose{from.data(), to.data(), batch, rows, columns, type});
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            ASSERT_EQ(to[(b * columns + c) * rows + r], from[(b * rows + r) * columns + c]);
      EXPECT_TRUE(to.is_intact());
    }
}

}  // namespace
}  // namespace troupe::gpu::testing
