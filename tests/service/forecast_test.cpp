#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "service/assets/embedded.hpp"
#include "service/forecast/forecasts.hpp"
#include "tests/service/schema_check.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

std::string config_of(int epochs) {
  return fmt::format(
      "[run]\nname = \"a\"\nepochs = {}\n[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\nbatch = "
      "[64]\n[strategy]\nname = \"easgd\"\ntau = 4\n[cluster]\nworkers = 2\n",
      epochs);
}
std::string started_of(int epochs) {
  return fmt::format(
      R"({{"kind":"started","t":0,"name":"a","strategy":"easgd","model":"lenet","dataset":"glyphs","workers":2,"servers":1,"epochs":{},"parameters":1000,"epoch_samples":6400,"epoch_position":0}})"
      "\n",
      epochs);
}
const std::string kStarted = started_of(2);

/// `ms`: of each of the worker's steps, `t` seconds long. `loading`: seconds before its first step.
std::string report(int worker, double ms, double t, double loading = 0, double bytes = 0, double exchange_s = 0) {
  const auto steps = static_cast<int>(t * 1000 / ms + 0.5);
  return fmt::format(
      R"({{"kind":"worker","t":{},"worker":{},"steps":{},"samples":{},"compute_s":{},"exchange_s":{},"wait_s":0,"load_s":0,"exchanges":{},"bytes":{}}})"
      "\n",
      t + loading, worker, steps, steps * 64, t - exchange_s, exchange_s, steps / 4, bytes);
}

/// Worker 0 takes 10 ms for a step of 64 samples, worker 1 takes 20 ms; exchanges take no time.
void uneven(const tests::Folder& folder) {
  const std::string run(kRun);
  folder.write(run + "/config.toml", config_of(2));
  std::string metrics = kStarted;
  for (const double t : {0.2, 0.4, 0.6, 0.8, 1.0}) metrics += report(0, 10, t) + report(1, 20, t);
  folder.write(run + "/metrics.jsonl", metrics);
}

class ForecastTest : public testing::Test {
 protected:
  ForecastTest() { uneven(folder_); }
  core::Result<Json> forecast(const std::string& strategy = {}, const std::vector<std::string>& set = {}) const {
    return forecast_run(folder_.path(), {std::string(kRun), strategy, set}, {}, {});
  }
  void append(const std::string& text) const {
    std::ofstream(folder_.file(std::string(kRun) + "/metrics.jsonl"), std::ios::app) << text << std::flush;
  }
  const tests::Folder folder_;
};

// Asynchronous: 64 / 0.01 + 64 / 0.02 = 9600 samples per second, so 2 · 6400 samples take 4/3 s.
TEST_F(ForecastTest, TheRunsOwnStrategyIsWhereTheRunIs) {
  const auto found = forecast();
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ((*found)["strategy"], "easgd");
  EXPECT_EQ((*found)["own"], true);
  EXPECT_DOUBLE_EQ((*found)["now"]["t"], 1.0);
  EXPECT_DOUBLE_EQ((*found)["now"]["actual"]["samples"], 9600);
  EXPECT_DOUBLE_EQ((*found)["now"]["actual"]["epoch"], 1.5);
  EXPECT_NEAR((*found)["now"]["forecast"]["samples"], 9600, 400);
  EXPECT_NEAR((*found)["end_s"], 4.0 / 3, 0.05);
  EXPECT_TRUE((*found)["exchange_gb_per_s"].is_null());
  EXPECT_EQ((*found)["cut_off"], false);
}

// In step with the slower worker: 2 · 64 / 0.02 = 6400 samples per second.
TEST_F(ForecastTest, AnotherStrategyIsAsFastAsItsWaitsLetIt) {
  const auto found = forecast("bsp");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ((*found)["own"], false);
  EXPECT_TRUE((*found)["notes"].empty()) << "strategy.tau is not bsp's, which is no news: " << (*found)["notes"];
  const auto asked = forecast("bsp", {"strategy.tau=4"});
  ASSERT_TRUE(asked.has_value()) << asked.error().message;
  EXPECT_EQ((*asked)["notes"], Json::array({"strategy.tau is not used by strategy bsp"})) << "asked for, it is";
  EXPECT_NEAR((*found)["now"]["forecast"]["samples"], 6400, 400);
  EXPECT_NEAR((*found)["now"]["forecast"]["epoch"], 1.0, 0.07);
  EXPECT_NEAR((*found)["end_s"], 2.0, 0.05);
}

// An exchange of 8000 bytes that takes 8 ms, every fourth step: 40 ms of steps and 8 ms of exchange.
TEST_F(ForecastTest, ExchangesCostWhatTheyHaveCost) {
  folder_.write(std::string(kRun) + "/metrics.jsonl",
                kStarted + report(0, 10, 0.96, 0, 160'000, 0.16) + report(1, 10, 0.96, 0, 160'000, 0.16));
  const auto found = forecast("", {"strategy.tau=4"});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR((*found)["exchange_gb_per_s"], 1e-3, 1e-9);  // 160,000 bytes in 0.16 s
}

TEST_F(ForecastTest, APauseForEvaluationIsPartOfTheForecast) {
  append(R"({"kind":"epoch","t":1.5,"epoch":1,"epochs":2,"steps":100,"train":{},"test":{},"lr":0.1,"train_s":1.0})"
         "\n");
  const auto found = forecast();
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR((*found)["evaluation_s"], 0.5, 1e-9);
  EXPECT_NEAR((*found)["end_s"], 4.0 / 3 + 0.5, 0.06);
}

// 10^15 s are more than a time of the simulation can say.
TEST_F(ForecastTest, APauseOfAnyLengthHarmsNothing) {
  append(R"({"kind":"epoch","t":1e15,"epoch":1,"epochs":2,"steps":100,"train":{},"test":{},"lr":0.1,"train_s":1.0})"
         "\n");
  const auto found = forecast();
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR((*found)["end_s"], 1e6 + 4.0 / 3, 1);
}

TEST_F(ForecastTest, ASessionBeginsWithItsFirstStep) {
  folder_.write(std::string(kRun) + "/metrics.jsonl", kStarted + report(0, 10, 0.5, 3) + report(1, 20, 0.5, 3));
  const auto measured = measure_run(folder_.path(), std::string(kRun), {});
  ASSERT_TRUE(measured.has_value());
  EXPECT_NEAR(measured->moments.latest().t, 0.5, 1e-9) << "3 s of loading are no training";
}

TEST_F(ForecastTest, OnlyTheSessionThatRunsCounts) {
  append(R"({"kind":"ended","t":2,"error":null})"
         "\n" +
         kStarted + report(0, 10, 0.1) + report(1, 10, 0.1));
  const auto measured = measure_run(folder_.path(), std::string(kRun), {});
  ASSERT_TRUE(measured.has_value());
  EXPECT_DOUBLE_EQ(measured->moments.latest().samples, 2 * 640);
}

class ResumedForecastTest : public ForecastTest {
 protected:
  /// The session after `begun_at` epochs of two, with steps until `t`: 9600 samples per second of 6400 an epoch.
  core::Result<Json> resumed(double begun_at, double t) const {
    auto started = kStarted;
    const std::string_view first = R"("epoch_position":0)";
    started.replace(started.find(first), first.size(), fmt::format(R"("epoch_position":{})", begun_at));
    std::string metrics = started;
    for (double at = 0.2; at < t + 0.1; at += 0.2) metrics += report(0, 10, at) + report(1, 20, at);
    folder_.write(std::string(kRun) + "/metrics.jsonl", metrics);
    return forecast();
  }
};

// One epoch is left: 2/3 s, or 6400 samples.
TEST_F(ResumedForecastTest, AResumedRunIsForecastToItsLastEpoch) {
  const auto found = resumed(1, 0.4);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR((*found)["now"]["forecast"]["epoch"], 1.6, 0.07);
  EXPECT_NEAR((*found)["end_s"], 2.0 / 3, 0.05);
  const auto last = (*found)["points"].back();
  EXPECT_DOUBLE_EQ(last[0], (*found)["end_s"]);
  EXPECT_NEAR(last[1], 6400, 1e-6);
}

// 1.5 epochs are left: 1 s.
TEST_F(ResumedForecastTest, ASessionThatBeginsWithinAnEpochHasAPartLess) {
  const auto found = resumed(0.5, 0.4);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR((*found)["end_s"], 1.0, 0.05);
  EXPECT_NEAR((*found)["points"].back()[1], 9600, 1e-6);
}

// 0.8 s are 7680 samples: those behind the end fill up last batches.
TEST_F(ResumedForecastTest, BehindItsEndThereIsNoForecastAndNoEpoch) {
  const auto found = resumed(1, 0.8);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_TRUE((*found)["now"]["forecast"].is_null());
  EXPECT_DOUBLE_EQ((*found)["now"]["actual"]["epoch"], 2);
}

TEST_F(ForecastTest, ARunThatHasMeasuredNothingHasNone) {
  folder_.write(std::string(kRun) + "/metrics.jsonl", kStarted);
  EXPECT_EQ(forecast().error().code, core::Errc::data);
  folder_.write(std::string(kRun) + "/metrics.jsonl", kStarted + report(0, 10, 1));
  EXPECT_EQ(forecast().error().code, core::Errc::data) << "worker 1 has taken no step";
  folder_.write(std::string(kRun) + "/metrics.jsonl", "");
  EXPECT_EQ(forecast().error().code, core::Errc::data);
}

TEST_F(ForecastTest, ItEndsAtItsLimit) {
  folder_.write(std::string(kRun) + "/config.toml", config_of(1'000'000));
  folder_.write(std::string(kRun) + "/metrics.jsonl", started_of(1'000'000) + report(0, 10, 1) + report(1, 20, 1));
  const auto found =
      forecast_run(folder_.path(), {std::string(kRun), "", {}}, {.computing = std::chrono::milliseconds(50)}, {});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ((*found)["cut_off"], true);
  EXPECT_TRUE((*found)["end_s"].is_null());
  EXPECT_LE((*found)["points"].size(), Moments::kMost + 1);
}

TEST(ForecastQuestionTest, OnlyWhatTimesHoldForCanBeChanged) {
  const auto taken = [](const std::string& strategy, const std::string& set) {
    ForecastQuestion question{.run = "a", .strategy = strategy};
    if (set != "-") question.overrides.push_back(set);
    return check_question(question).has_value();
  };
  EXPECT_TRUE(taken("bsp", "-"));
  EXPECT_FALSE(taken("none", "-"));
  for (const auto* set : {"strategy.tau=4", "exchange.wire=fp16", "cluster.servers=2"})
    EXPECT_TRUE(taken("", set)) << set;
  for (const auto* set : {"data.batch=1", "cluster.workers=3", "strategy.name=bsp", "model.command=sh", "tau=4", ""})
    EXPECT_FALSE(taken("", set)) << set;
}

TEST(MomentsTest, TheyAreThinnedAndKeepTheLatest) {
  Moments moments;
  for (int i = 0; i < 100'000; ++i) moments.add({i * 0.001, i * 2.0, i * 1.0});
  const auto all = moments.all();
  EXPECT_LE(all.size(), Moments::kMost + 1);
  EXPECT_GT(all.size(), Moments::kMost / 3);
  EXPECT_DOUBLE_EQ(all.back().samples, 199'998);
  EXPECT_NEAR(moment_at(all, 50)->samples, 100'000, 1e-6);
  EXPECT_NEAR(*time_of_samples(all, 100'000), 50, 1e-6);
  EXPECT_FALSE(moment_at(all, 101).has_value());
  EXPECT_FALSE(time_of_samples(all, 1e9).has_value());
  moments.add({1, 1, 1});
  EXPECT_DOUBLE_EQ(moments.latest().samples, 199'998) << "time does not go back";
}

class ForecastApiTest : public testing::Test {
 protected:
  /// The answer when it is there.
  Reply answer(const std::string& query) const {
    Reply reply;
    EXPECT_TRUE(tests::eventually([&] {
      reply = served_.get(fmt::format("/api/v1/runs/{}/forecast{}", kRun, query));
      return reply.status != 202 && reply.status != 429;  // nor asked too often
    }));
    return reply;
  }
  const Served served_{Limits{}, uneven};
};

TEST_F(ForecastApiTest, TheFirstAnswerIsThatItIsComputed) {
  const auto first = served_.get(fmt::format("/api/v1/runs/{}/forecast?strategy=ssp", kRun));
  EXPECT_EQ(first.status, 202);
  EXPECT_EQ(first.json()["pending"], true);
  const auto then = answer("?strategy=ssp");
  EXPECT_EQ(then.status, 200);
  EXPECT_EQ(then.json()["strategy"], "ssp");
  const auto document = nlohmann::json::parse(embedded_openapi());
  EXPECT_EQ(misfit_of_answer(document, "get", "/api/v1/runs/{run}/forecast", 200, then.json()), "");
  EXPECT_EQ(misfit_of_answer(document, "get", "/api/v1/runs/{run}/forecast", 202, first.json()), "");
}

TEST_F(ForecastApiTest, RefusalsAndStates) {
  EXPECT_EQ(answer("?strategy=none").status, 400);
  EXPECT_EQ(answer("?set=data.batch%3D1").status, 400);
  EXPECT_EQ(answer("?set=strategy.tau%3D0").status, 400) << "a value that the option refuses";
  EXPECT_EQ(served_.get("/api/v1/runs/none/forecast").status, 404);
  EXPECT_EQ(served_.get(fmt::format("/api/v1/runs/{}/forecast", kRun), Role::none).status, 401);
}

TEST_F(ForecastApiTest, SettingsAreTaken) {
  const auto often = answer("?set=strategy.tau%3D1&set=exchange.wire%3Dfp16").json();
  EXPECT_EQ(often["set"], nlohmann::json::parse(R"(["strategy.tau=1","exchange.wire=fp16"])"));
}

}  // namespace
}  // namespace troupe::service
