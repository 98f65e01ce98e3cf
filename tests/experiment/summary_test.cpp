#include "experiment/summary.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::experiment {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

WorkerProgress worker_progress(std::uint32_t rank) {
  return {.worker = rank,
          .steps = 100 + rank,
          .samples = 6400,
          .loss = 0.5,
          .top1 = 3,
          .recent_samples = 4,
          .compute_s = 10.0 + rank,
          .exchange_s = 1,
          .wait_s = 0.5,
          .load_s = 0.25,
          .exchanges = 25,
          .dropped = 1,
          .skipped = 2,
          .replaced = 7,
          .bytes = 4096,
          .staleness_sum = 30,
          .staleness_count = 20,
          .staleness_max = 3,
          .staleness = {5, 10, 4, 1},
          .waits = {0, 0.4, 0.1},
          .done = {}};
}

Summary summary() {
  Summary s;
  s.run = "runs/a";
  s.strategy = "easgd";
  s.workers = 2;
  s.servers = 1;
  s.samples = 12800;
  s.test_accuracy = 0.9891;
  s.exchange_skipped = 4;
  s.center_hash = "xxh3:0123456789abcdef";
  s.per_worker = {worker_progress(0), worker_progress(1)};
  return s;
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  return names;
}

using Keys = std::vector<std::string>;

TEST(SummaryTest, KeysAndTheirOrderAreTheContract) {
  const auto json = Json::parse(to_json(summary()));
  EXPECT_EQ(keys(json), (Keys{"run",       "strategy",   "model",      "dataset",    "device",           "precision",
                              "workers",   "servers",    "epochs",     "steps",      "samples",          "wall_s",
                              "train",     "test",       "time",       "exchange",   "center_hash",      "waits",
                              "staleness", "per_worker", "stopped_by", "validation", "time_to_target_s", "goodput"}));
  EXPECT_TRUE(json["goodput"].is_null()) << "of a replay";
  EXPECT_TRUE(json["validation"].is_null());
  EXPECT_TRUE(json["time_to_target_s"].is_null());
  EXPECT_EQ(keys(json["train"]), (Keys{"loss", "images_per_s"}));
  EXPECT_EQ(keys(json["test"]), (Keys{"loss", "accuracy", "top5"}));
  EXPECT_EQ(keys(json["time"]),
            (Keys{"compute_s", "exchange_s", "wait_s", "load_s", "forward_s", "backward_s", "optimizer_s"}));
  EXPECT_EQ(keys(json["exchange"]),
            (Keys{"count", "bytes", "dropped", "staleness_mean", "staleness_max", "skipped", "refused"}));
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["test"]["accuracy"], 0.9891);
  EXPECT_EQ(json["exchange"]["skipped"], 4);
  EXPECT_EQ(json["waits"],
            Json::parse(R"({"workers": 2, "servers": 1, "seconds": [[0.0, 0.4, 0.1], [0.0, 0.4, 0.1]]})"));
  EXPECT_EQ(json["staleness"]["workers"][1], (std::vector<int>{5, 10, 4, 1}));
  EXPECT_EQ(json["staleness"]["edges"][5], 6);
  EXPECT_EQ(json["center_hash"], "xxh3:0123456789abcdef");
  EXPECT_TRUE(json["stopped_by"].is_null());
  auto early = summary();
  early.stopped_by = "max_seconds";
  EXPECT_EQ(Json::parse(to_json(early))["stopped_by"], "max_seconds");
}

TEST(SummaryTest, ValidationHasItsLatestAndItsBestScore) {
  auto s = summary();
  s.validation = {.has = true,
                  .loss = 0.5,
                  .accuracy = 0.8,
                  .best_loss = 0.4,
                  .best_accuracy = 0.9,
                  .best_epoch = 1.5,
                  .best_train_s = 7,
                  .evaluations = 3};
  s.time_to_target_s = 6;
  const auto json = Json::parse(to_json(s));
  EXPECT_EQ(json["validation"], Json::parse(R"({"loss": 0.5, "accuracy": 0.8, "top5": null, "evaluations": 3,
      "best": {"loss": 0.4, "accuracy": 0.9, "epoch": 1.5, "train_s": 7.0}})"));
  EXPECT_EQ(json["time_to_target_s"], 6);
}

TEST(SummaryTest, IsOneLine) { EXPECT_EQ(to_json(summary()).find('\n'), std::string::npos); }

TEST(SummaryTest, TimeIsPerWorkerAveraged) {
  const auto time = Json::parse(to_json(summary()))["time"];
  EXPECT_DOUBLE_EQ(time["compute_s"], 10.5);  // (10 + 11) / 2
  EXPECT_DOUBLE_EQ(time["exchange_s"], 1);
  EXPECT_DOUBLE_EQ(time["load_s"], 0.25);
  EXPECT_EQ(average_time({}).total_s(), 0);
}

TEST(SummaryTest, WorkersInRankOrderWithTheirSums) {
  const auto workers = Json::parse(to_json(summary()))["per_worker"];
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[1]["worker"], 1);
  EXPECT_EQ(workers[1]["steps"], 101);
  EXPECT_EQ(workers[1]["replaced"], 7);
  EXPECT_DOUBLE_EQ(workers[1]["staleness_mean"], 1.5);  // 30 / 20
  EXPECT_EQ(Json::parse(to_json(Summary{}))["per_worker"], Json::array());
}

TEST(SummaryTest, NonFiniteNumbersAndMissingTopFiveAreNull) {
  auto s = summary();
  s.train_loss = kNan;
  s.test_loss = std::numeric_limits<double>::infinity();
  auto json = Json::parse(to_json(s));
  EXPECT_TRUE(json["train"]["loss"].is_null());
  EXPECT_TRUE(json["test"]["loss"].is_null());
  EXPECT_TRUE(json["test"]["top5"].is_null());
  s.test_top5 = 0.5;
  EXPECT_EQ(Json::parse(to_json(s))["test"]["top5"], 0.5);
}

TEST(SummaryTest, BytesThatAreNoTextDoNotThrow) {
  auto s = summary();
  s.run = "runs/\xff\"\n";
  EXPECT_EQ(Json::parse(to_json(s))["run"], "runs/\xef\xbf\xbd\"\n");
}

TEST(MetricsTest, EveryLineHasItsKindAndTime) {
  for (const auto& [kind, line] :
       std::vector<std::pair<std::string, std::string>>{{"started", to_json(RunStarted{}, 1.5)},
                                                        {"worker", to_json(worker_progress(0), 1.5)},
                                                        {"epoch", to_json(EpochReport{}, 1.5)},
                                                        {"evaluation", to_json(EvaluationReport{}, 1.5)},
                                                        {"member", to_json(MemberReport{}, 1.5)},
                                                        {"ledger", to_json(LedgerReport{}, 1.5)},
                                                        {"note", to_json(Note{}, 1.5)},
                                                        {"ended", to_json(RunEnd{}, 1.5)}}) {
    const auto json = Json::parse(line);
    EXPECT_EQ(json["kind"], kind);
    EXPECT_EQ(json["t"], 1.5) << kind;
    EXPECT_EQ(keys(json).front(), "kind");
    EXPECT_EQ(line.find('\n'), std::string::npos) << kind;
  }
}

TEST(MetricsTest, WorkerLineHasSumsAndRecentValues) {
  auto json = Json::parse(to_json(worker_progress(1), 0));
  EXPECT_EQ(json["samples"], 6400);
  EXPECT_EQ(json["recent"]["samples"], 4);
  EXPECT_EQ(json["recent"]["accuracy"], 0.75);
  auto program = worker_progress(1);
  program.top1 = -1;
  EXPECT_TRUE(Json::parse(to_json(program, 0))["recent"]["accuracy"].is_null()) << "it does not say";
  auto idle = worker_progress(1);
  idle.recent_samples = 0;
  json = Json::parse(to_json(idle, 0));
  EXPECT_TRUE(json["recent"]["loss"].is_null());
  EXPECT_TRUE(json["recent"]["accuracy"].is_null());
}

TEST(MetricsTest, BytesAreByPurposeAndMember) {
  auto progress = worker_progress(0);
  progress.traffic = {{Purpose::exchange, 1, 4000}, {Purpose::collective, 0, 96}};
  progress.distance = 2.5;
  const auto json = Json::parse(to_json(progress, 0));
  EXPECT_EQ(json["traffic"], Json::parse(R"([["exchange", 1, 4000], ["collective", null, 96]])"));
  EXPECT_EQ(json["recent"]["distance"], 2.5);
  EXPECT_FALSE(Json::parse(to_json(worker_progress(0), 0))["recent"].contains("distance")) << "not measured";
}

TEST(MetricsTest, MembersAndLedgersHaveTheirKeys) {
  const auto member = Json::parse(to_json(MemberReport{.worker = 2,
                                                       .event = MemberReport::Event::lost,
                                                       .node = "h2:4242",
                                                       .reason = "why",
                                                       .steps = 7,
                                                       .epoch = 0.5,
                                                       .train_s = 3,
                                                       .members = 1},
                                          9));
  EXPECT_EQ(member, Json::parse(R"({"kind": "member", "t": 9.0, "event": "lost", "worker": 2, "node": "h2:4242",
      "reason": "why", "steps": 7, "epoch": 0.5, "train_s": 3.0, "members": 1})"));
  EXPECT_TRUE(Json::parse(to_json(MemberReport{}, 0))["node"].is_null());

  LedgerReport ledger{.size = 10, .done = 4, .given_up = 1, .leased = 2, .free = 2, .omitted = 1, .useful = 4};
  EXPECT_TRUE(Json::parse(to_json(ledger, 0))["goodput"].is_null());
  ledger.possible = 5;
  EXPECT_EQ(Json::parse(to_json(ledger, 0))["goodput"], 0.8);
  auto s = summary();
  s.ledger = ledger;
  EXPECT_EQ(Json::parse(to_json(s))["goodput"]["share"], 0.8);
  EXPECT_EQ(Json::parse(to_json(s))["goodput"]["useful"], 4);
}

TEST(MetricsTest, EpochNoteAndEndLinesHaveTheirKeys) {
  const auto epoch = Json::parse(
      to_json(EpochReport{.epoch = 2, .epochs = 5, .train_loss = 0.25, .test_accuracy = 0.5, .lr = 0.01}, 0));
  EXPECT_EQ(epoch["epoch"], 2);
  EXPECT_EQ(epoch["train"]["loss"], 0.25);
  EXPECT_EQ(epoch["test"]["accuracy"], 0.5);
  EXPECT_TRUE(epoch["test"]["top5"].is_null());
  const auto note = Json::parse(to_json(Note{Note::Level::warning, "disk is slow"}, 0));
  EXPECT_EQ(note["level"], "warning");
  EXPECT_EQ(note["text"], "disk is slow");
  RunEnd end;
  EXPECT_TRUE(Json::parse(to_json(end, 0))["error"].is_null());
  end.failed = true;
  end.error = {core::Errc::diverged, "worker 1, step 7"};
  const auto failed = Json::parse(to_json(end, 0));
  EXPECT_EQ(failed["error"]["code"], "diverged");
  EXPECT_EQ(failed["error"]["message"], "worker 1, step 7");
}

}  // namespace
}  // namespace troupe::experiment
