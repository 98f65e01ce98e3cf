// plan.json: the backend's choices and the exchange of the members, from a value to text and back.
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

TEST(ExchangePlan, RoundTripsBesideTheBackendsPlan) {
  const auto plan = apart();
  const auto text = to_json(plan);
  const auto back = parse_plan(text, "plan.json").value();
  EXPECT_EQ(back.exchange, plan.exchange);
  EXPECT_EQ(back.backend.json, kBackend) << "a backend sees what it wrote";
  EXPECT_EQ(to_json(back), text) << "hashes are of the text";
  EXPECT_EQ(parse_exchange(to_json(plan.exchange), "here").value(), plan.exchange);
}

TEST(ExchangePlan, SaysOnlyOfRunsOnDevicesThatTheyAre) {
  auto plan = apart();
  EXPECT_EQ(to_json(plan).find("on_devices"), std::string::npos) << "hashes of other runs stay as they were";
  plan.exchange.on_devices = true;
  EXPECT_TRUE(parse_plan(to_json(plan), "plan.json")->exchange.on_devices);
  EXPECT_FALSE(parse_plan(to_json(apart()), "plan.json")->exchange.on_devices);
  EXPECT_EQ(to_json(plan).find("mapped"), std::string::npos);
  plan.exchange.mapped = true;
  EXPECT_TRUE(parse_plan(to_json(plan), "plan.json")->exchange.mapped);
  EXPECT_FALSE(parse_plan(to_json(apart()), "plan.json")->exchange.mapped);
}

TEST(ExchangePlan, KnowsWhichSitesShareAHost) {
  ExchangePlan plan{.endpoint = "tcp", .worker_sites = {1, 2, 3}, .server_sites = {0}, .site_hosts = {0, 0, 1, 2}};
  EXPECT_TRUE(plan.on_one_host(0, 1));
  EXPECT_FALSE(plan.on_one_host(1, 2));
  EXPECT_FALSE(plan.on_one_host());
  EXPECT_TRUE(plan.has_neighbours(0));
  EXPECT_TRUE(plan.has_neighbours(1)) << "the server's";
  EXPECT_FALSE(plan.has_neighbours(2));
  plan.site_hosts = {};
  EXPECT_TRUE(plan.on_one_host() && plan.on_one_host(1, 3) && plan.has_neighbours(3));
  const ExchangePlan alone{.endpoint = "tcp", .worker_sites = {0}, .server_sites = {0}};
  EXPECT_FALSE(alone.has_neighbours(0));
  const ExchangePlan without_servers{.endpoint = "tcp", .worker_sites = {1, 2}};
  EXPECT_FALSE(without_servers.has_neighbours(0)) << "it has no members";
  EXPECT_TRUE(without_servers.has_neighbours(2));
}

TEST(ExchangePlan, PlanInPlaceHasNoExchangeEntry) {
  const RunPlan plan{.backend = {kBackend}};
  EXPECT_TRUE(plan.exchange.in_place());
  auto json = nlohmann::json::parse(to_json(plan));
  EXPECT_EQ(json.at("arithmetic"), 3);
  json.erase("arithmetic");
  EXPECT_EQ(json.dump(), kBackend);
  // In another form than this program writes: the hash of the text itself counts.
  const std::string older = "{ \"version\": 1, \"backend\": \"cpu\" }";
  const auto back = parse_plan(older, "plan.json").value();
  EXPECT_EQ(back.backend.json, older);
  EXPECT_EQ(back.exchange, ExchangePlan{});
  EXPECT_EQ(back.arithmetic, 1);
  EXPECT_EQ(parse_exchange(to_json(plan.exchange), "here").value(), ExchangePlan{});
}

/// Version 0.1 recorded no version of its arithmetic and rounded every vector; its recordings are replayed so. A newer version is unknown.
TEST(ExchangePlan, PlanRecordsTheVersionOfItsArithmetic) {
  EXPECT_FALSE(parse_plan(to_json(apart()), "plan.json")->exchange.rounds_masters);
  auto whole = nlohmann::json::parse(to_json(apart()));
  whole.erase("arithmetic");
  const auto older = parse_plan(whole.dump(), "plan.json").value();
  EXPECT_TRUE(older.exchange.rounds_masters);
  EXPECT_EQ(older.arithmetic, 1);
  EXPECT_TRUE(older.exchange.rounds_there(core::Rounding::none));
  whole["arithmetic"] = 99;
  const auto newer = parse_plan(whole.dump(), "runs/a/plan.json");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, core::Errc::config);
  EXPECT_NE(newer.error().message.find("runs/a/plan.json"), std::string::npos) << newer.error().message;
}

TEST(ExchangePlan, RoundsOnlyRoundableVectors) {
  using enum core::Rounding;
  const auto plan = apart().exchange;
  const auto both_ways = [](const ExchangePlan& p, core::Rounding r) {
    return std::pair(p.rounds_there(r), p.rounds_back(r));
  };
  EXPECT_EQ(both_ways(plan, both), std::pair(true, true));
  EXPECT_EQ(both_ways(plan, answer), std::pair(false, true));
  EXPECT_EQ(both_ways(plan, change), std::pair(false, true));
  EXPECT_EQ(both_ways(plan, none), std::pair(false, false));
  EXPECT_EQ(both_ways(ExchangePlan{}, both), std::pair(false, false)) << "there is no wire";
  EXPECT_EQ(plan.reduction(100, both), Algorithm::asa16);
  EXPECT_EQ(plan.reduction(100, none), Algorithm::asa) << "the same sum in the same order";
  EXPECT_EQ(plan.reduction(10'000, none), Algorithm::ring);
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

TEST(ExchangePlan, LargestUsableGradientDependsOnTheWire) {
  auto plan = apart().exchange;
  EXPECT_EQ(plan.largest_usable(), core::kLargestUsable) << "bf16 has the range of float32";
  plan.wire = core::HalfKind::fp16;
  EXPECT_EQ(plan.largest_usable(), 65504);
  plan.wire.reset();
  EXPECT_EQ(plan.largest_usable(), 65504) << "asa16 rounds to fp16 then";
  plan.reductions = {{{}, Algorithm::ring}};
  EXPECT_EQ(plan.largest_usable(), core::kLargestUsable);
  EXPECT_EQ(ExchangePlan{}.largest_usable(), core::kLargestUsable);
}

TEST(ExchangePlan, InvalidPlansAreCorruptAndNamed) {
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
  expect_refused("worker_sites", {1, 2, 9});  // without a host
  expect_refused("packed", "yes");
  expect_refused("reductions", nlohmann::json::array());
  expect_refused("reductions", {{{"algorithm", "tree"}}});
  expect_refused("reductions", {{{"algorithm", "auto"}}});
  expect_refused("reductions", {{{"algorithm", "asa"}, {"up_to_floats", 9}}});  // no algorithm above 9 floats
  expect_refused("reductions", {{{"algorithm", "asa"}}, {{"algorithm", "ring"}, {"up_to_floats", 9}}});
  EXPECT_FALSE(parse_plan("{", "plan.json"));
  EXPECT_FALSE(parse_exchange("[]", "plan.json"));
}

}  // namespace
}  // namespace troupe::experiment
