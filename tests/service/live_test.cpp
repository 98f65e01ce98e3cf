#include <fcntl.h>

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "service/live/followed_file.hpp"
#include "service/live/live_runs.hpp"
#include "service/live/metrics_line.hpp"
#include "service/live/run_state.hpp"
#include "tests/folder.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::service {
namespace {

std::string worker_line(double t, int worker, int samples, double wait = 0) {
  return fmt::format(
      R"({{"kind":"worker","t":{},"worker":{},"steps":{},"samples":{},"compute_s":1.5,"exchange_s":0.5,"wait_s":{},"load_s":0,"exchanges":3,"bytes":100,"staleness_mean":0.5,"staleness_max":2,"passed":0,"replaced":0,"waits":[0,{},0.25],"staleness":[1,2],"recent":{{"samples":64,"loss":0.5,"accuracy":0.75}}}})",
      t, worker, samples / 10, samples, wait, wait);
}

RunState read_all(const std::vector<std::string>& lines) {
  RunState state;
  for (const auto& line : lines) static_cast<void>(state.read(line));
  return state;
}

std::string one_line(std::string text) {
  text.pop_back();
  return text;
}

TEST(RunStateTest, WorkersAreAddedUp) {
  // 100 samples per epoch, one server; each worker makes 10 samples per second.
  const auto state = read_all({one_line(store::started_line()), worker_line(1, 0, 10), worker_line(1, 1, 10),
                               worker_line(3, 0, 30), worker_line(3, 1, 30, 0.5)})
                         .json(0, "running", 77);
  EXPECT_EQ(state["samples"], 60);
  EXPECT_EQ(state["samples_per_s"], 20);
  EXPECT_EQ(state["steps"], 6);
  EXPECT_EQ(state["epoch"], 0.6);
  EXPECT_EQ(state["epochs"], 3);
  EXPECT_EQ(state["position"], 77);
  EXPECT_EQ(state["workers"][1]["loss"], 0.5);
  EXPECT_EQ(state["waits"]["rows"], nlohmann::json::parse(R"(["worker 0", "worker 1"])"));
  EXPECT_EQ(state["waits"]["columns"], nlohmann::json::parse(R"(["worker 0", "worker 1", "server 0"])"));
  EXPECT_EQ(state["waits"]["seconds"][1], nlohmann::json::parse("[0, 0.5, 0.25]"));
}

TEST(RunStateTest, MembersLedgerTrafficAndDistanceAreTheLatest) {
  auto measured = worker_line(1, 0, 10);
  measured.replace(measured.find("\"samples\":64"), 0, "\"distance\":2.5,");
  auto later = worker_line(2, 0, 20);
  later.replace(later.find("\"waits\""), 0, R"("traffic":[["push",0,60],["pull",0,40]],)");
  const auto lost = R"({"kind":"member","t":2,"event":"lost","worker":1,"node":null,"reason":"why","epoch":0.25})";
  const auto ledger = [](int useful) { return fmt::format(R"({{"kind":"ledger","t":2,"useful":{}}})", useful); };
  const auto state =
      read_all({one_line(store::started_line()), measured, later, lost, ledger(1), ledger(2)}).json(0, "running", 0);
  EXPECT_EQ(state["workers"][0]["distance"], 2.5) << "the last that was measured";
  EXPECT_EQ(state["workers"][0]["traffic"], nlohmann::json::parse(R"([["push", 0, 60], ["pull", 0, 40]])"));
  ASSERT_EQ(state["members"].size(), 2U);
  EXPECT_EQ(state["members"][0]["event"], "started");
  EXPECT_EQ(state["members"][1]["reason"], "why");
  EXPECT_FALSE(state["members"][1].contains("kind"));
  const auto odd = read_all({R"({"kind":"member","event":{"a":[1]},"worker":1,"reason":")" + std::string(3000, 'x') +
                                 R"(","more":"y"})",
                             R"({"kind":"ledger","useful":[[1]],"size":5,"more":1})"})
                       .json(0, "running", 0);
  EXPECT_TRUE(odd["members"][0]["event"].is_null()) << "a file may say anything";
  EXPECT_TRUE(odd["members"][0]["reason"].is_null());
  EXPECT_FALSE(odd["members"][0].contains("more"));
  EXPECT_EQ(odd["ledger"]["size"], 5);
  EXPECT_TRUE(odd["ledger"]["useful"].is_null());
  EXPECT_FALSE(odd["ledger"].contains("more"));
  EXPECT_EQ(state["ledger"]["useful"], 2);
  EXPECT_TRUE(read_all({one_line(store::started_line())}).json(0, "running", 0)["ledger"].is_null());
}

TEST(RunStateTest, ALineWithoutTablesKeepsThoseBeforeIt) {
  auto with = worker_line(1, 0, 10, 0.5), without = worker_line(2, 0, 20, 0.75);
  with.replace(with.find("\"waits\""), 0, R"("traffic":[["push",0,60]],)");
  without.erase(without.find(R"("waits":[0,0.75,0.25],)"), std::string_view(R"("waits":[0,0.75,0.25],)").size());
  const auto state = read_all({one_line(store::started_line()), with, without}).json(0, "running", 0);
  EXPECT_EQ(state["workers"][0]["samples"], 20);
  EXPECT_EQ(state["waits"]["seconds"][0], nlohmann::json::parse("[0, 0.5, 0.25]"));
  EXPECT_EQ(state["workers"][0]["traffic"], nlohmann::json::parse(R"([["push", 0, 60]])"));
}

TEST(RunStateTest, SilentWorkerHasNoSpeed) {
  const auto state =
      read_all({one_line(store::started_line()), worker_line(1, 0, 10), worker_line(2, 0, 20), worker_line(2, 1, 20)})
          .json(100, "running", 0);
  EXPECT_EQ(state["samples_per_s"], 0);
  EXPECT_EQ(state["workers"][0]["seconds_since_report"], 100);
}

TEST(RunStateTest, AResumedRunContinuesBehindItsEarlierSession) {
  const auto state =
      read_all({one_line(store::started_line()), worker_line(1, 0, 100), one_line(store::epoch_line(1, 0.5)),
                one_line(store::ended_line("interrupted")), one_line(store::started_line(1)), worker_line(1, 0, 50)})
          .json(0, "running", 0);
  EXPECT_EQ(state["epoch"], 1.5);
  EXPECT_EQ(state["samples"], 150);
  EXPECT_EQ(state["steps"], 15);  // epoch_line: 10 at its end; 5 since
  EXPECT_TRUE(state["error"].is_null());
}

// 100 samples are an epoch, and three epochs the run. Of 120 computed ones 20 filled up the last batches.
TEST(RunStateTest, AnEpochEndsWhereTheLedgerSays) {
  const auto ledger = [](int epoch, int done, int computed) {
    return fmt::format(
        R"({{"kind":"ledger","t":2,"epoch":{},"size":100,"done":{},"given_up":0,"omitted":0,"computed":{}}})", epoch,
        done, computed);
  };
  const auto epoch_of = [](const std::vector<std::string>& lines) {
    return read_all(lines).json(0, "running", 0)["epoch"].get<double>();
  };
  const auto started = one_line(store::started_line()), resumed = one_line(store::started_line(1));
  EXPECT_EQ(epoch_of({started, worker_line(1, 0, 120), ledger(0, 100, 120)}), 1);
  EXPECT_EQ(epoch_of({started, worker_line(1, 0, 120), ledger(0, 100, 120), worker_line(2, 0, 180)}), 1.5)
      << "at 120 computed samples for an epoch";
  EXPECT_EQ(epoch_of({started, worker_line(1, 0, 100), ledger(0, 100, 120), worker_line(2, 0, 120)}), 1)
      << "the ledger knew of the last 20 before the worker's own line told";
  EXPECT_EQ(epoch_of({started, worker_line(1, 0, 320)}), 3) << "without a ledger at least the run's end is known";
  EXPECT_EQ(epoch_of({started, worker_line(1, 0, 120), ledger(0, 100, 120), resumed, worker_line(1, 0, 60),
                      ledger(1, 50, 180), worker_line(2, 0, 72)}),
            1.6);
}

// A third of the steps is passed over: 200 of the first 300 samples were computed, and the session was resumed from there.
TEST(RunStateTest, SamplesAndStepsOfEarlierSessionsAreThoseThatTheRunGoesOnWith) {
  auto resumed = one_line(store::started_line(3));
  resumed.replace(resumed.find("\"epoch_samples\""), 0, R"("steps":20,"samples":200,"train_s":7,)");
  const auto state = read_all({one_line(store::started_line()), worker_line(1, 0, 210), resumed, worker_line(1, 0, 50)})
                         .json(0, "running", 0);
  EXPECT_EQ(state["samples"], 250);
  EXPECT_EQ(state["steps"], 25);
}

TEST(RunStateTest, TimesAreOfAllSessions) {
  const auto at = [](const char* kind, double t, const char* more = "") {
    return fmt::format(R"({{"kind":"{}","t":{}{}}})", kind, t, more);
  };
  std::vector<std::string> lines{one_line(store::started_line()), at("ledger", 4, R"(,"wall_s":3.5)"), at("note", 5),
                                 one_line(store::started_line(1)), at("note", 1)};
  auto state = read_all(lines).json(2, "running", 0);
  EXPECT_EQ(state["wall_s"], 6.5) << "3.5 s that the ledger of the first session tells, and 1 s + 2 s";
  EXPECT_EQ(state["t"], 3);
  EXPECT_EQ(state["notes"][0]["wall_s"], 4.5);
  EXPECT_EQ(state["notes"][1]["wall_s"], 4.5);
  EXPECT_EQ(state["members"][1]["wall_s"], 3.5);
  lines.push_back(at("ledger", 8, R"(,"wall_s":11)"));
  lines.push_back(at("worker", 9));
  EXPECT_EQ(read_all(lines).json(0, "running", 0)["wall_s"], 12);
  lines.push_back(at("ended", 0, R"(,"wall_s":11.25)"));  // as of a summary that was missing
  EXPECT_EQ(read_all(lines).json(0, "done", 0)["wall_s"], 11.25);
}

TEST(RunStateTest, EndAndEvaluationsAreKept) {
  const auto state = read_all({one_line(store::started_line()), one_line(store::epoch_line(1, 0.5)),
                               one_line(store::epoch_line(2, 0.625)), one_line(store::ended_line("diverged"))});
  EXPECT_EQ(state.outcome(), "diverged");
  const auto json = state.json(0, "diverged", 0);
  ASSERT_EQ(json["evaluations"].size(), 2U);
  EXPECT_EQ(json["evaluations"][0]["split"], "test");
  EXPECT_EQ(json["evaluations"][0]["accuracy"], 0.625);
}

TEST(RunStateTest, OnlyTheLatestNotesAreKept) {
  RunState state;
  for (int i = 0; i < 120; ++i)
    static_cast<void>(state.read(fmt::format(R"({{"kind":"note","t":{},"level":"info","text":"n{}"}})", i, i)));
  const auto json = state.json(0, "running", 0);
  ASSERT_EQ(json["notes"].size(), RunState::kNotes);
  EXPECT_EQ(json["notes"].back()["text"], "n119");
}

TEST(RunStateTest, LinesThatMeanNothingAreIgnored) {
  RunState state;
  for (const auto* line :
       {"", "x", "[]", "1", "{}", R"({"kind":1})", R"({"kind":"worker"})", R"({"kind":"epoch","train":1})",
        R"({"kind":"worker","worker":"a","samples":"b","waits":3,"staleness":null,"recent":[]})",
        R"({"kind":"ended","error":3})", R"({"kind":"started","workers":-1,"servers":-5})"})
    static_cast<void>(state.read(line));
  EXPECT_TRUE(state.json(0, "running", 0).is_object());
}

TEST(RunStateTest, CountersBeyondReasonAreMissingOnes) {
  RunState state;
  for (const auto* line :
       {R"({"kind":"started","servers":1e300})", R"({"kind":"worker","worker":1e300,"steps":-1e300,"waits":[1,2]})",
        R"({"kind":"worker","worker":0,"steps":7})", R"({"kind":"epoch","steps":1e19})"})
    static_cast<void>(state.read(line));
  const auto json = state.json(0, "running", 0);
  EXPECT_EQ(json["workers"][0]["worker"], -1);
  EXPECT_EQ(json["servers"], 0);
  EXPECT_EQ(json["steps"], 7);
  EXPECT_EQ(json["waits"]["columns"], nlohmann::json::parse(R"(["worker 0", "worker 1"])"));
}

TEST(RunStateTest, MembersAndSplitsBeyondThoseOfAnyRunAreLeftOut) {
  RunState state;
  for (int i = 0; i < 5'000; ++i) {
    static_cast<void>(state.read(fmt::format(R"({{"kind":"worker","worker":{},"steps":1}})", i)));
    static_cast<void>(state.read(fmt::format(R"({{"kind":"evaluation","split":"s{}","loss":1}})", i)));
  }
  const auto json = state.json(0, "running", 0);
  EXPECT_EQ(json["workers"].size(), 4'096U);
  EXPECT_EQ(json["evaluations"].size(), 8U);
}

TEST(RunStateTest, ALineThatIsNestedDeeplyHarmsNothing) {
  constexpr std::size_t kLevels = 1'000'000;
  const auto deep = std::string(kLevels, '[') + std::string(kLevels, ']');
  RunState state;
  static_cast<void>(state.read(R"({"kind":"note","t":1,"level":"info","text":)" + deep + "}"));
  static_cast<void>(state.read(R"({"kind":"worker","t":2,"worker":0,"steps":3,"waits":)" + deep + "}"));
  const auto json = state.json(0, "running", 0);
  EXPECT_LT(json.dump().size(), 4'096U);
  EXPECT_EQ(json["workers"][0]["steps"], 3);
  EXPECT_EQ(json["t"], 2);
}

TEST(MetricsLineTest, KeysBeyondThoseOfAnyLineAreLeftOut) {
  std::string many = R"({"kind":"worker")";
  for (int key = 0; key < 10'000; ++key) many += fmt::format(R"(,"k{}":{})", key, key);
  const auto line = metrics_line(many + "}");
  EXPECT_EQ(line["kind"], "worker");
  EXPECT_EQ(line.size(), 4'096U);
  EXPECT_EQ(line["k4094"], 4'094);
  EXPECT_TRUE(metrics_line(R"({"kind":"worker")").is_null()) << "a line that is cut off";
}

class FollowedFileTest : public testing::Test {
 protected:
  void append(std::string_view text) const { std::ofstream(path_, std::ios::app) << text << std::flush; }
  std::vector<std::string> read() {
    std::vector<std::string> lines;
    for (bool more = true; more;)
      more = file_.read([&](std::string_view line, std::uint64_t) { lines.emplace_back(line); }).value();
    return lines;
  }
  const tests::Folder folder_;
  const std::string path_ = folder_.write("f", "one\ntwo\nthr");
  FollowedFile file_{core::FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC))};
};

TEST_F(FollowedFileTest, OnlyWholeLinesComeAndEachOnce) {
  EXPECT_EQ(read(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(file_.position(), 8U);
  EXPECT_TRUE(read().empty());
  append("ee\n\nfive\n");
  EXPECT_EQ(read(), (std::vector<std::string>{"three", "", "five"}));
}

TEST_F(FollowedFileTest, ACutLineIsForgotten) {
  EXPECT_EQ(read().size(), 2U);
  std::filesystem::resize_file(path_, 8);  // as a resume does
  append("new\n");
  EXPECT_EQ(read(), (std::vector<std::string>{"new"}));
}

TEST_F(FollowedFileTest, LinesLongerThanAPieceAreWhole) {
  static_cast<void>(read());
  const std::string line(3 * FollowedFile::kPieceBytes + 17, 'x');
  append(line + "\nend\n");
  EXPECT_EQ(read(), (std::vector<std::string>{"thr" + line, "end"}));
}

class LiveRunsTest : public testing::Test {
 protected:
  LiveRunsTest() {
    folder_.write("a/config.toml", store::config_text("a"));
    write("a/metrics.jsonl", 100);
  }
  void write(const std::string& name, int epochs) const {
    auto text = store::started_line();
    for (int epoch = 1; epoch <= epochs; ++epoch) text += store::epoch_line(epoch, 0.5);
    folder_.write(name, text);
  }
  const tests::Folder folder_;
  LiveRuns runs_{folder_.path()};
};

TEST_F(LiveRunsTest, AQueueThatNobodyTakesIsLetGoOf) {
  std::weak_ptr<EventQueue> queue;
  {
    const auto subscribed = runs_.subscribe("a", 0);
    ASSERT_TRUE(subscribed.has_value());
    queue = *subscribed;
    static_cast<void>(runs_.poll());
    EXPECT_FALSE((*subscribed)->ended());
  }
  ASSERT_FALSE(queue.expired());
  static_cast<void>(runs_.poll());
  EXPECT_TRUE(queue.expired());
}

TEST_F(LiveRunsTest, AFileThatIsReplacedIsFollowedAnew) {
  const auto before = runs_.subscribe("a", std::nullopt);
  ASSERT_TRUE(before.has_value());
  write("a/new", 1);  // shorter
  std::filesystem::rename(folder_.file("a/new"), folder_.file("a/metrics.jsonl"));
  static_cast<void>(runs_.poll());
  EXPECT_TRUE((*before)->ended()) << "its client comes again";
  const auto after = runs_.subscribe("a", 0);
  ASSERT_TRUE(after.has_value());
  const auto text = (*after)->take(1 << 20);
  EXPECT_NE(text.find("event: epoch"), std::string::npos);
  EXPECT_EQ(runs_.state("a")->at("epoch"), 1);
  write("a/new", 2);
  std::filesystem::rename(folder_.file("a/new"), folder_.file("a/metrics.jsonl"));
  EXPECT_EQ(runs_.state("a")->at("epoch"), 2) << "also without a poll between";
}

TEST_F(LiveRunsTest, ARunThatIsGoneEndsItsStreamsAndHasNoState) {
  const auto renamed = runs_.subscribe("a", std::nullopt);
  ASSERT_TRUE(renamed.has_value());
  std::filesystem::rename(folder_.file("a"), folder_.file("b"));
  static_cast<void>(runs_.poll());
  EXPECT_TRUE((*renamed)->ended()) << "its client is told that there is no such run";
  EXPECT_EQ(runs_.state("a").error().code, core::Errc::config);
  const auto removed = runs_.subscribe("b", std::nullopt);
  ASSERT_TRUE(removed.has_value());
  std::filesystem::remove_all(folder_.file("b"));
  EXPECT_EQ(runs_.state("b").error().code, core::Errc::config) << "also without a poll between";
  EXPECT_TRUE((*removed)->ended());
  EXPECT_FALSE(runs_.poll().has_value()) << "no run is looked at";
}

}  // namespace
}  // namespace troupe::service
