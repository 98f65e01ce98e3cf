// What only the CPU backend does; what every backend must do is tested in tests/nn/backend_contract.
#include <algorithm>

#include <gtest/gtest.h>

#include "cpu/compile.hpp"
#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

TEST(CpuBackend, ReportsItsCapabilities) {
  const auto backend = make_backend();
  EXPECT_EQ(backend->name(), "cpu");
  const auto precisions = backend->capabilities().precisions;
  EXPECT_EQ(std::ranges::count(precisions, Precision::fp32), 1);
  EXPECT_EQ(std::ranges::count(precisions, Precision::bf16), computes_bf16() ? 1 : 0);
  EXPECT_EQ(backend->capabilities().arena_space, core::MemorySpace::host);
  EXPECT_EQ(&backend->kernels(), &core::host_kernels());
}

TEST(CpuBackend, ComputesTheSameInEitherActivationLayout) {
  const Plan blocked{R"({"backend":"cpu","version":1,"activations":"blocked","implementations":{}})"};
  const Plan channels_last{R"({"backend":"cpu","version":1,"activations":"channels_last","implementations":{}})"};
  for (const Graph& graph : {lenet(), small_net()}) {
    expect_like_reference(graph, 5, &blocked);
    expect_like_reference(graph, 5, &channels_last);
  }
}

TEST(CpuBackend, RebuildsWorkingCopiesOnlyAfterParametersWritten) {
  Model model(lenet(), {.batch = 4});
  const double before = model.step().loss;
  // conv2's weight is read only through working copies (its arena has the layout of its gradient).
  const auto& tensor = model.replica->layout()->tensors()[2];
  ASSERT_EQ(tensor.name, "conv2.weight");
  auto weight = model.replica->parameters().subspan(static_cast<std::size_t>(tensor.offset),
                                                    static_cast<std::size_t>(tensor.extent));
  for (float& x : weight) x *= 0.5f;
  EXPECT_EQ(model.step().loss, before);
  model.replica->parameters_written();
  EXPECT_NE(model.step().loss, before);
}

TEST(CpuBackend, MergesSmallTensorsIntoBuckets) {
  Model model(graph_of({64, 1, 1}, {LinearLayer{300, {}}, ActivationLayer{}, LinearLayer{400, {}}, ActivationLayer{},
                                    LinearLayer{300, {}}, LinearLayer{10, {}}}),
              {.batch = 2});
  EXPECT_EQ(model.replica->buckets().size(), 3u);  // fc4 + fc3: 123k floats; fc2: 120k; fc1: the rest
}

}  // namespace
}  // namespace troupe::cpu::testing
