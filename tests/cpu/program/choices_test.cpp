#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cpu/kernels/row_gradient.hpp"
#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

core::Result<std::unique_ptr<Replica>> compile_with(const Graph& graph, const Plan& plan) {
  static core::HostAllocator allocator;
  return backend().compile(graph, {.batch = 4, .arenas = &allocator, .plan = &plan});
}

TEST(Plans, AreTheSameEveryTime) {
  Model first(lenet(), {.batch = 4});
  Model second(lenet(), {.batch = 4});
  EXPECT_EQ(first.replica->plan().json, second.replica->plan().json);
}

TEST(Plans, LayoutIsChosenByTheChannels) {
  const auto activations = [](std::int64_t channels) {
    Model model(graph_of({3, 6, 6}, {Conv2dLayer{channels, 3, 1, 0, {}}, FlattenLayer{}, LinearLayer{4, {}}}),
                {.batch = 2});
    return nlohmann::json::parse(model.replica->plan().json).at("activations").get<std::string>();
  };
  EXPECT_EQ(activations(20), "channels_last");
  EXPECT_EQ(activations(32), "blocked");
}

TEST(Plans, PlanFixesTheImplementations) {
  Model model(lenet(), {.batch = 4});
  auto json = nlohmann::json::parse(model.replica->plan().json);
  // Another implementation that every x86 CPU has; LeNet's convolutions start with a JIT one.
  json["implementations"]["conv2.forward"] = "x64:gemm:jit";
  const auto compiled = compile_with(model.graph, {json.dump()});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(nlohmann::json::parse((*compiled)->plan().json), json);
}

TEST(Plans, OwnDataGradientAgreesWithOneDnns) {
  Model model(lenet(), {.batch = 4});
  auto json = nlohmann::json::parse(model.replica->plan().json);
  auto& used = json["implementations"]["conv2.backward_data"];
  if (!row_gradient_available()) {
    EXPECT_NE(used, kRowGradient);
    GTEST_SKIP() << "this CPU has no AVX-512";
  }
  EXPECT_EQ(used, kRowGradient);  // 20 channels
  used = "jit:avx512_core";
  const Plan plan{json.dump()};
  Model other(lenet(), {.batch = 4, .plan = &plan});
  (void)model.step();
  (void)other.step();
  const auto want = other.canonical_gradients();
  EXPECT_LT(relative_error(model.canonical_gradients(), std::vector<double>(want.begin(), want.end())), 1e-5);

  json["activations"] = "blocked";
  used = kRowGradient;
  const auto compiled = compile_with(model.graph, {json.dump()});
  ASSERT_FALSE(compiled.has_value());  // it supports only channels last
  EXPECT_EQ(compiled.error().code, core::Errc::config);
}

TEST(Plans, OwnDataGradientPaysWhereChannelsLeaveLanesEmpty) {
  EXPECT_TRUE(row_gradient_pays({.channels = 20, .kernel = 5}));   // 32 / 20 against 112 / 100
  EXPECT_FALSE(row_gradient_pays({.channels = 64, .kernel = 3}));  // both full
  EXPECT_FALSE(row_gradient_pays({.channels = 20, .kernel = 1}));  // a row is one pixel
}

TEST(Plans, WrongPlansAreConfigErrors) {
  const Graph graph = lenet();
  for (const char* text :
       {"", "[]", "{}", R"({"backend":"cuda","version":1})", R"({"backend":"cpu","version":2})",
        R"({"backend":"cpu","version":1,"activations":"sideways","implementations":{}})",
        R"({"backend":"cpu","version":1,"activations":"blocked"})", R"({"backend":1,"version":1})",
        R"({"backend":"cpu","version":"1"})", R"({"backend":"cpu","version":1,"precision":32})",
        R"({"backend":"cpu","version":1,"activations":null,"implementations":{}})",
        R"({"backend":"cpu","version":1,"activations":"blocked","implementations":{"conv1.forward":1}})"}) {
    const auto compiled = compile_with(graph, {text});
    ASSERT_FALSE(compiled.has_value()) << text;
    EXPECT_EQ(compiled.error().code, core::Errc::config);
  }
  const auto missing = compile_with(
      graph, {R"({"backend":"cpu","version":1,"activations":"blocked","implementations":{"conv2.forward":"abacus"}})"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, core::Errc::config);
  EXPECT_NE(missing.error().message.find("abacus"), std::string::npos);
  EXPECT_NE(missing.error().message.find("conv2"), std::string::npos);
}

}  // namespace
}  // namespace troupe::cpu::testing
