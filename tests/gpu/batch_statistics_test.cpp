// Compiled steps whose convolutions sum up the statistics of the batch norms behind them: fusion, plans, numbers, too little memory, faults.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gpu/compile.hpp"
#include "gpu/device/faulty_device.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

/// How often operations of a pass end with `what`, behind the name of their node.
int operations_of(const std::vector<Operation>& operations, const std::string& what, When when) {
  return static_cast<int>(std::ranges::count_if(operations, [&](const Operation& operation) {
    return operation.when == when && operation.what.substr(operation.what.find(' ') + 1) == what;
  }));
}

/// One convolution with a batch norm.
nn::Graph normalised_net() {
  return nn::Graph::sequential("normalised", {8, 4, 4},
                               {nn::Conv2dLayer{8, 1, 1, 0, {}, 1, false}, nn::BatchNormLayer{}, nn::FlattenLayer{},
                                nn::LinearLayer{5, {}}},
                               nn::Loss::softmax_cross_entropy)
      .value();
}

/// How often operations of forward begin, behind the name of their node, with "forward", by what passes they are part of and whether they sum
/// up statistics.
int forward_convolutions(const std::vector<Operation>& operations, When when, bool statistics) {
  return static_cast<int>(std::ranges::count_if(operations, [&](const Operation& operation) {
    return operation.when == when && operation.what.find(" forward ") != std::string::npos &&
           operation.what.ends_with(", statistics") == statistics;
  }));
}

// In 16 bits training passes leave the first pass over memory of each batch norm to the convolution in front of it.
TEST(BatchStatistics, BelongToTheConvolutionsInFrontOfBatchNormsIn16Bits) {
  for (const auto precision : {nn::Precision::bf16, nn::Precision::fp16}) {
    TrainedModel model(std::make_shared<HostDevice>(), zoo("resnet18", {3, 32, 32}, 10),
                       {.batch = 2, .precision = precision, .deterministic = false});
    const auto& forward = model.gpu().program().forward;
    EXPECT_EQ(operations_of(forward, "batch statistics of sums", When::training), 20);
    EXPECT_EQ(operations_of(forward, "batch statistics", When::training), 0);
    EXPECT_EQ(forward_convolutions(forward, When::training, true), 20);
    EXPECT_EQ(forward_convolutions(forward, When::evaluation, false), 20);
    EXPECT_EQ(forward_convolutions(forward, When::always, false), 0);
  }
}

TEST(BatchStatistics, AreAPassOfTheirOwnWhereNoEngineSumsThemUpOrTheOptionSaysSo) {
  const auto graph = zoo("resnet18", {3, 32, 32}, 10);
  const auto expect_apart = [](const TrainedModel& model) {
    const auto& forward = model.gpu().program().forward;
    EXPECT_EQ(operations_of(forward, "batch statistics", When::training), 20);
    EXPECT_EQ(forward_convolutions(forward, When::always, false), 20);
    EXPECT_EQ(forward_convolutions(forward, When::training, true), 0);
  };
  const TrainedModel none(std::make_shared<HostDevice>(HostDeviceOptions{.sums_statistics = false}), graph,
                          {.batch = 2, .precision = nn::Precision::fp16, .deterministic = false});
  expect_apart(none);
  int named = 0;
  const auto json = nlohmann::json::parse(none.replica->plan().json);
  for (const auto& [description, engine] : json.at("engines").items())
    if (description.ends_with(", statistics")) {
      EXPECT_EQ(engine, "apart") << description;
      ++named;
    }
  EXPECT_GT(named, 5);
  const TrainedModel off(
      std::make_shared<HostDevice>(), graph,
      {.batch = 2, .precision = nn::Precision::fp16, .deterministic = false, .statistics_in_convolutions = false});
  expect_apart(off);
  // Engines add atomically: their sums have other bits each time.
  const TrainedModel same_bits(std::make_shared<HostDevice>(), graph, {.batch = 2, .precision = nn::Precision::fp16});
  expect_apart(same_bits);
  EXPECT_EQ(off.replica->plan().json.find("statistics"), std::string::npos);
}

/// The two ways differ by what rounding of sums is worth, in forward, backward and the running values.
TEST(BatchStatistics, OfSumsTrainAsThoseOfAPassOfTheirOwn) {
  for (const auto precision : {nn::Precision::bf16, nn::Precision::fp16}) {
    nn::CompileOptions options{.batch = 4, .precision = precision, .deterministic = false};
    TrainedModel summed(std::make_shared<HostDevice>(), branching_net(), options);
    options.statistics_in_convolutions = false;
    TrainedModel apart(std::make_shared<HostDevice>(), branching_net(), options);
    ASSERT_GT(forward_convolutions(summed.gpu().program().forward, When::training, true), 1);
    const double first = summed.step().loss;
    EXPECT_NEAR(first, apart.step().loss, 1e-3 * first);
    const auto gradients = summed.gradients(), wanted = apart.gradients();
    double distance = 0, size = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      distance += std::pow(gradients[i] - wanted[i], 2);
      size += std::pow(wanted[i], 2);
    }
    EXPECT_LT(std::sqrt(distance), 0.02 * std::sqrt(size));
    const auto running = summed.replica->statistics(), want_running = apart.replica->statistics();
    ASSERT_EQ(running.size(), want_running.size());
    for (std::size_t i = 0; i < running.size(); ++i) EXPECT_NEAR(running[i], want_running[i], 1e-4) << i;
    const double evaluated = apart.replica->evaluate(apart.batch()).value().loss;
    EXPECT_NEAR(summed.replica->evaluate(summed.batch()).value().loss, evaluated, 1e-2 * evaluated);
  }
}

/// As Memory.EnginesWithLessWorkspaceAreTakenWhereItRunsOut, of a convolution whose statistics an engine sums up in its workspace alone, or
/// without as well.
TEST(BatchStatistics, AreSummedByASmallerEngineAndApartWhereNoneIsSmallEnough) {
  const auto graph = normalised_net();
  const auto engine_with = [&](bool needs_workspace, std::size_t memory) {
    auto device =
        std::make_shared<HostDevice>(HostDeviceOptions{.memory = memory, .sums_when_staged = needs_workspace});
    const TrainedModel model(device, graph, {.batch = 2, .precision = nn::Precision::bf16, .deterministic = false});
    std::string engine;
    const auto json = nlohmann::json::parse(model.replica->plan().json);
    for (const auto& [description, name] : json.at("engines").items())
      if (description.ends_with(", statistics")) engine = name.get<std::string>();
    return std::pair(engine, device->live_bytes());
  };
  for (const bool needs_workspace : {false, true}) {
    const auto [usual, needed] = engine_with(needs_workspace, 1 << 20);
    EXPECT_EQ(usual, "host staged");
    EXPECT_EQ(engine_with(needs_workspace, needed).first, usual);
    EXPECT_EQ(engine_with(needs_workspace, needed - 1).first, needs_workspace ? "apart" : "host direct");
  }
}

class FaultWhileMeasuring : public ::testing::TestWithParam<CallKind> {};

/// Where engines are tried and timed: with those that sum up statistics. A fault there may cost an engine, which changes numbers.
TEST_P(FaultWhileMeasuring, IsAnErrorOrCostsAnEngineAndLeavesNothingBehind) {
  const CallKind kind = GetParam();
  HostDevice host(HostDeviceOptions{.is_measurable = true});
  core::HostAllocator arenas;
  const auto graph = normalised_net();
  const nn::CompileOptions options{
      .batch = 2, .precision = nn::Precision::fp16, .arenas = &arenas, .deterministic = false};
  for (const bool lost : {false, true})
    for (const auto code : {core::Errc::io, core::Errc::out_of_memory}) {
      std::uint64_t number = 1;
      for (bool struck = true; struck; number = number < 4 ? number + 1 : number + number / 2) {
        FaultyDevice device(host);
        device.set(Fault{.kind = kind, .number = number, .code = code, .lost = lost});
        {
          const auto compiled = compile(device, graph, options, nullptr);
          struck = device.struck();
          if (!compiled) {
            EXPECT_TRUE(compiled.error().code == core::Errc::io || compiled.error().code == code);
          }
          EXPECT_TRUE(compiled || struck);
        }
        EXPECT_EQ(device.live_objects(), 0) << to_string(kind) << " " << number;
        ASSERT_EQ(host.live_bytes(), 0u) << to_string(kind) << " " << number;
        ASSERT_EQ(host.live_pinned_bytes(), 0u) << to_string(kind) << " " << number;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Calls, FaultWhileMeasuring,
                         ::testing::Values(CallKind::allocation, CallKind::pinned_allocation, CallKind::stream,
                                           CallKind::event, CallKind::plan, CallKind::copy, CallKind::launch,
                                           CallKind::run, CallKind::record, CallKind::synchronize, CallKind::capture,
                                           CallKind::graph, CallKind::timing),
                         kind_name);

}  // namespace
}  // namespace troupe::gpu::testing
