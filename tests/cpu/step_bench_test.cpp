#include "cpu/step_bench.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "cpu/backend.hpp"
#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

TEST(StepBench, ItsThreeNumbersAgree) {
  const nn::Graph graph = small_net();
  const auto result = run_step_bench(graph, {.compile = {.batch = 8}, .seconds = 0});  // windows of one step
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_GT(result->images_per_s, 0);
  EXPECT_NEAR(result->ms_per_step * result->images_per_s, 8e3, 1e-3);
  EXPECT_NEAR(result->gflops, result->images_per_s * graph.training_flops() / 1e9, 1e-9 * result->gflops);
}

TEST(StepBench, HasTheTimeOfEveryStepAndOfNoPause) {
  const nn::Graph graph = small_net();
  const auto busy = run_step_bench(graph, {.compile = {.batch = 8}, .seconds = 0});
  ASSERT_EQ(busy->steps_ms.size(), 3U);  // one per window
  EXPECT_NEAR(*std::ranges::min_element(busy->steps_ms), busy->ms_per_step, 1e-6);
  const auto paused = run_step_bench(graph, {.compile = {.batch = 8}, .seconds = 0, .slowdown = 4});
  ASSERT_EQ(paused->steps_ms.size(), 3U);
  EXPECT_NEAR(*std::ranges::min_element(paused->steps_ms), paused->ms_per_step, 1e-6);
}

TEST(StepBench, PassesErrorsOn) {
  EXPECT_EQ(run_step_bench(small_net(), {.compile = {.batch = 0}, .seconds = 0}).error().code, core::Errc::config);
}

TEST(StepBench, MeasuresRanksAndHasNoBreakdownOfThem) {
  const auto graph = graph_of({8, 1, 1}, {nn::LinearLayer{9, {}}, nn::ActivationLayer{}, nn::LinearLayer{4, {}}});
  const nn::CompileOptions ranks{.batch = 8, .threads = 2, .parallel = nn::Parallel::neurons};
  EXPECT_GT(run_step_bench(graph, {.compile = ranks, .seconds = 0})->images_per_s, 0);
  EXPECT_EQ(run_step_bench(graph, {.compile = ranks, .seconds = 0, .breakdown = true}).error().code, core::Errc::usage);
}

TEST(StepBench, MeasuresAnotherBackendAndHasNoBreakdownOfIt) {
  const auto graph = small_net();
  const auto backend = make_backend();
  EXPECT_GT(run_step_bench(graph, {.compile = {.batch = 8}, .seconds = 0, .backend = backend.get()})->images_per_s, 0);
  const auto refused =
      run_step_bench(graph, {.compile = {.batch = 8}, .seconds = 0, .breakdown = true, .backend = backend.get()});
  EXPECT_EQ(refused.error().code, core::Errc::usage);
}

}  // namespace
}  // namespace troupe::cpu::testing
