#include "apps/watch/run_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/watch/service_lines.hpp"
#include "tests/folder.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What the lines print.
class RunLinesTest : public testing::Test {
 protected:
  std::string printed(const std::vector<std::string>& lines, const Json& summary = nullptr) {
    const auto path = folder_.file("printed");
    std::FILE* const file = std::fopen(path.c_str(), "w");
    RunLines run(file, clock_);
    for (const auto& text : lines) {
      const auto line = Json::parse(text, nullptr, false);
      if (line.is_object() && line.contains("kind") && line["kind"] == "ended")
        run.read_end(line, summary);
      else
        run.read(line);
    }
    std::fclose(file);
    return folder_.read("printed");
  }
  const tests::Folder folder_;
  core::SteadyClock clock_;
};

constexpr auto kWorker =
    R"({"kind":"worker","t":1,"worker":0,"steps":10,"samples":640,"compute_s":6,"exchange_s":2,"wait_s":2,"load_s":0,"staleness_mean":1.5,"staleness_max":3,"staleness":[1,1,2],"waits":[0,2],"recent":{"samples":640,"loss":0.5,"accuracy":0.9}})";

TEST_F(RunLinesTest, ARunIsPrintedAsTrainDoes) {
  const auto text = printed({store::started_line(), kWorker, store::epoch_line(1, 0.5), store::ended_line()});
  EXPECT_THAT(text, AllOf(HasSubstr("easgd"), HasSubstr("lenet"), HasSubstr("glyphs")));
  EXPECT_THAT(text, HasSubstr("50.00 %")) << "the epoch's test accuracy";
  EXPECT_THAT(text, HasSubstr("300 samples in 0:08")) << "wall_s is 7.5";
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(RunLinesTest, TheSummaryOfTheEndDecides) {
  const auto text = printed({store::started_line(), store::epoch_line(1, 0.5), store::ended_line()},
                            Json::parse(store::summary_text(0.875)));
  EXPECT_THAT(text, AllOf(HasSubstr("test accuracy 87.50 %"), HasSubstr("1,00")));  // 1,000.5 images/s
}

TEST_F(RunLinesTest, AResumedRunHasTwoSessions) {
  const auto text =
      printed({store::started_line(), kWorker, store::epoch_line(1, 0.5), store::ended_line("interrupted"),
               store::started_line(1), store::epoch_line(2, 0.75), store::ended_line()});
  EXPECT_THAT(text, AllOf(HasSubstr("50.00 %"), HasSubstr("75.00 %")));
}

TEST_F(RunLinesTest, LinesThatMakeNoSenseHarmNothing) {
  const auto text = printed({"{}", "[]", R"({"kind":7})", R"({"kind":"worker","worker":-1,"staleness":[-1,1e300,"x"]})",
                             R"({"kind":"epoch","train":3,"test":[]})", R"({"kind":"evaluation"})",
                             R"({"kind":"started","epochs":1e300,"workers":-4,"name":"\u001b[2J"})",
                             R"({"kind":"note","text":"a\u001b[2Jb"})", R"({"kind":"ended","error":{"code":3}})"});
  EXPECT_THAT(text, AllOf(HasSubstr("a [2Jb"), Not(HasSubstr("\x1b"))));
}

TEST(ErrorOfEndTest, CodesAreThoseOfTheRun) {
  EXPECT_FALSE(error_of_end(Json::parse(store::ended_line())).has_value());
  EXPECT_EQ(error_of_end(Json::parse(store::ended_line("diverged")))->code, core::Errc::diverged);
  EXPECT_EQ(error_of_end(Json::parse(store::ended_line("diverged")))->message, "it broke");
  EXPECT_EQ(error_of_end(Json::parse(store::ended_line("of a later version")))->code, core::Errc::internal);
}

TEST(ProgressOfTest, StalenessIsThatOfItsBins) {
  const auto progress = progress_of(Json::parse(kWorker));
  EXPECT_EQ(progress.staleness_count, 4U);
  EXPECT_EQ(progress.staleness_sum, 6U);  // 1.5 · 4
  EXPECT_EQ(progress.recent_samples, 640U);
  EXPECT_EQ(progress.waits, (std::vector<double>{0, 2}));
}

TEST(ServiceLinesTest, OnlyWhatChangesIsSaid) {
  ServiceLines lines;
  const Json job{{"id", 3}, {"name", "night"}, {"state", "queued"}, {"run", nullptr}};
  EXPECT_EQ(lines.job(job), "job 3 night: queued");
  EXPECT_EQ(lines.job(job), std::nullopt);
  auto running = job;
  running["state"] = "running";
  running["priority"] = 5;
  EXPECT_EQ(lines.job(running), "job 3 night: running");
  running["priority"] = 6;
  EXPECT_EQ(lines.job(running), std::nullopt);
  running["run"] = "20260102-030405-a";
  EXPECT_EQ(lines.job(running), "job 3 night: running, run 20260102-030405-a");
  running["state"] = "failed";
  running["error"] = "no data\x1b[2J";
  EXPECT_EQ(lines.job(running), "job 3 night: failed, run 20260102-030405-a: no data [2J");
  EXPECT_EQ(lines.job(Json{{"id", 3}, {"state", "deleted"}}), "job 3: deleted");
  EXPECT_EQ(lines.job(Json::array()), std::nullopt);
}

TEST(ServiceLinesTest, AtFirstOnlyWhatIsUnderWayIsSaid) {
  ServiceLines lines;
  EXPECT_EQ(lines.run({{"run", "a"}, {"status", "done"}}, true), std::nullopt);
  EXPECT_EQ(lines.run({{"run", "b"}, {"status", "running"}}, true), "run b: running");
  EXPECT_EQ(lines.run({{"run", "b"}, {"status", "done"}, {"accuracy", 0.5}}), "run b: done, test accuracy 50.00 %");
  EXPECT_EQ(lines.node({{"address", "h:1"}, {"state", "alive"}}, true), std::nullopt);
  EXPECT_EQ(lines.node({{"address", "h:1"}, {"state", "dead"}, {"error", "silent"}}), "node h:1: dead: silent");
}

TEST(ServiceLinesTest, LinesOfARunAreItsEvaluationsNotesAndEnds) {
  const auto of = [](const std::string& text) { return ServiceLines::of_run("a", Json::parse(text)).value_or("-"); };
  EXPECT_EQ(of(kWorker), "-");
  EXPECT_THAT(of(store::epoch_line(2, 0.5)), AllOf(HasSubstr("run a: "), HasSubstr("50.00 %")));
  EXPECT_EQ(of(R"({"kind":"note","level":"warning","text":"worker 3 is lost"})"), "run a: warning: worker 3 is lost");
  EXPECT_EQ(of(store::ended_line("diverged")), "run a: ended: it broke");
}

}  // namespace
}  // namespace troupe::apps
