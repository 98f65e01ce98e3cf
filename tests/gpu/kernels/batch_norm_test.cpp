// The gradients of a batch norm with relu: the sign of its output comes from memory or from its input.
#include <array>

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

}  // namespace
}  // namespace troupe::gpu::testing
