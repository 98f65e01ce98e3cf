// plan.json: what the backend chose and how members exchange, from a value to text and back.
#include "experiment/exchange_plan.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::experiment {
namespace {

using exchange::Algorithm;

constexpr auto kBackend = R"({"activations":"blocked","backend":"cpu","version":1})";

RunPlan apart() {
  return {.backend = {kBackend},
          .exchange = {.endpoint = "tcp",
                       .wire = core::HalfKind::bf16,
                       .worker_sites = {1, 2, 3},
                       .server_sites = {0, 1},
                       .site_hosts = {0, 0, 1, 1},
                       .packed = true,
                       .reductions = {{4096, Algorithm::asa16}, {{}, Algorithm::ring}}}};
}

TEST(ExchangePlan, ComesBackEqualBesideTheBackends) {
  const auto plan = apart();
  const auto text = to_json(plan);
  const auto back = parse_plan(text, "plan.json").value();
  EXPECT_EQ(back.exchange, plan.exchange);
  EXPECT_EQ(back.backend.json, kBackend) << "a backend sees what it wrote";
  EXPECT_EQ(to_json(back), text) << "hashes are of the text";
  EXPECT_EQ(parse_exchange(to_json(plan.exchange), "here").value(), plan.exchange);
}

TEST(ExchangePlan, InPlaceIsWhatOlderProgramsWrote) {
  const RunPlan plan{.backend = {kBackend}};
  EXPECT_TRUE(plan.exchange.in_place());
  EXPECT_EQ(to_json(plan), kBackend);
  // Not as this program would write it: the hash of what is there counts.
  const std::string older = "{ \"version\": 1, \"backend\": \"cpu\" }";
  const auto back = parse_plan(older, "plan.json").value();
  EXPECT_EQ(back.backend.json, older);
  EXPECT_EQ(back.exchange, ExchangePlan{});
  EXPECT_EQ(parse_exchange(to_json(plan.exchange), "here").value(), ExchangePlan{});
}

TEST(ExchangePlan, TheFirstReductionThatIsLargeEnoughHolds) {
  auto plan = apart().exchange;
  plan.reductions = {{100, Algorithm::asa}, {200, Algorithm::asa16}, {{}, Algorithm::ring}};
  EXPECT_EQ(plan.reduction(1), Algorithm::asa);
  EXPECT_EQ(plan.reduction(100), Algorithm::asa);
  EXPECT_EQ(plan.reduction(101), Algorithm::asa16);
  EXPECT_EQ(plan.reduction(201), Algorithm::ring);
  EXPECT_EQ(ExchangePlan{}.reduction(1), Algorithm::asa);
}

TEST(ExchangePlan, WithoutAWireAsa16RoundsToFp16) {
  EXPECT_EQ(ExchangePlan{}.half(), core::HalfKind::fp16);
  EXPECT_EQ(apart().exchange.half(), core::HalfKind::bf16);
}

TEST(ExchangePlan, WhatNoRunWritesIsCorruptAndNamed) {
  const auto expect_refused = [](const char* field, const nlohmann::json& value) {
    auto whole = nlohmann::json::parse(to_json(apart()));
    whole["exchange"][field] = value;
    const auto read = parse_plan(whole.dump(), "runs/a/plan.json");
    ASSERT_FALSE(read) << field << " " << value;
    EXPECT_EQ(read.error().code, core::Errc::corrupt);
    EXPECT_NE(read.error().message.find("runs/a/plan.json"), std::string::npos) << read.error().message;
  };
  expect_refused("endpoint", 1);
  expect_refused("wire", "fp8");
  expect_refused("worker_sites", {1, 2, 9});  // on no host
  expect_refused("packed", "yes");
  expect_refused("reductions", nlohmann::json::array());
  expect_refused("reductions", {{{"algorithm", "tree"}}});
  expect_refused("reductions", {{{"algorithm", "auto"}}});
  expect_refused("reductions", {{{"algorithm", "asa"}, {"up_to_floats", 9}}});  // and above?
  expect_refused("reductions", {{{"algorithm", "asa"}}, {{"algorithm", "ring"}, {"up_to_floats", 9}}});
  EXPECT_FALSE(parse_plan("{", "plan.json"));
  EXPECT_FALSE(parse_exchange("[]", "plan.json"));
}

}  // namespace
}  // namespace troupe::experiment
