/// The service or a supervisor is killed at each named point between two steps (service/jobs/job_folder.hpp); then a service goes on.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "service/jobs/job_store.hpp"
#include "tests/folder.hpp"
#include "tests/nodes/process.hpp"

namespace troupe::service {
namespace {

using nodes::Process;
using Words = std::vector<std::string>;

class CrashAt {
 public:
  explicit CrashAt(const std::string& point) { ::setenv("TROUPE_JOB_CRASH", point.c_str(), 1); }
  ~CrashAt() { ::unsetenv("TROUPE_JOB_CRASH"); }
  CrashAt(const CrashAt&) = delete;
  CrashAt& operator=(const CrashAt&) = delete;
};

class CrashPointsTest : public ::testing::Test {
 protected:
  /// The exit code of a service with these words; -1: it was killed.
  int serve(const Words& words) {
    Words line{TROUPE_JOB_HOST, "serve", folder_.path(), "1"};
    line.insert(line.end(), words.begin(), words.end());
    Process host(line);
    const int code = host.wait();
    said_ += host.err();
    return code;
  }
  std::vector<Job> jobs() {
    auto store = JobStore::open(folder_.file(".service/jobs.sqlite"));
    auto list = store ? store->list() : tl::unexpected(store.error());
    EXPECT_TRUE(list.has_value());
    return list.value_or(std::vector<Job>{});
  }
  /// How often each job has run.
  std::map<std::int64_t, int> runs() {
    std::map<std::int64_t, int> count;
    std::istringstream text(folder_.read("runs"));
    for (std::int64_t id = 0; text >> id;) ++count[id];
    return count;
  }
  tests::Folder folder_;
  std::string said_;
};

class ServiceCrashTest : public CrashPointsTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(ServiceCrashTest, EachJobThatWasAcceptedRunsExactlyOnce) {
  {
    const CrashAt crash(GetParam());
    EXPECT_EQ(serve({"submit=2", "drain"}), -1) << "the point is not reached";
    serve({"submit=1", "drain"});  // the next one is killed there, too, if it gets there
  }
  ASSERT_EQ(serve({"drain"}), 0) << said_;
  const auto all = jobs();
  const auto accepted = nodes::count(said_, "submitted ");
  EXPECT_GE(all.size(), accepted);
  EXPECT_LE(all.size(), 3U);
  auto counts = runs();
  for (const auto& job : all) {
    EXPECT_EQ(job.state, JobState::done) << job.id << " " << name(job.state) << " " << job.error;
    EXPECT_EQ(counts[job.id], 1) << job.id;
  }
  EXPECT_EQ(counts.size(), all.size());
}

INSTANTIATE_TEST_SUITE_P(AtEveryPoint, ServiceCrashTest,
                         ::testing::Values("submit: before row", "submit: row", "begin: before row", "begin: row",
                                           "begin: folder", "begin: supervisor started", "process: before row",
                                           "process: row", "observe: locked", "end: before row", "end: row"));

/// The fence exists only where a service was killed before: twice, at different points.
TEST_F(CrashPointsTest, AServiceThatIsKilledAtTheFenceLeavesAJobThatRunsOnce) {
  {
    const CrashAt crash("begin: row");
    ASSERT_EQ(serve({"submit=1", "drain"}), -1);
  }
  {
    const CrashAt crash("observe: fenced");
    ASSERT_EQ(serve({"drain"}), -1);
  }
  ASSERT_EQ(serve({"drain"}), 0) << said_;
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_EQ(jobs().front().state, JobState::done);
  EXPECT_EQ(jobs().front().attempt, 2) << "the first attempt was fenced";
  EXPECT_EQ(runs(), (std::map<std::int64_t, int>{{1, 1}}));
}

TEST_F(CrashPointsTest, AFolderThatAKilledRemovalHasLeftGoesAtTheNextStart) {
  {
    const CrashAt crash("remove: row");
    ASSERT_EQ(serve({"submit=1", "drain", "remove"}), -1) << "the point is not reached";
  }
  EXPECT_TRUE(jobs().empty());
  ASSERT_TRUE(std::filesystem::exists(folder_.file(".service/jobs/1")));
  ASSERT_EQ(serve({"drain"}), 0) << said_;
  EXPECT_FALSE(std::filesystem::exists(folder_.file(".service/jobs/1")));
}

class StopCrashTest : public CrashPointsTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(StopCrashTest, AStopIsDeliveredOnceThoughTheServiceIsKilled) {
  {
    const CrashAt crash(GetParam());
    ASSERT_EQ(serve({"train", "stop", "drain"}), -1) << "the point is not reached";
  }
  ASSERT_EQ(serve({"drain"}), 0) << said_;
  EXPECT_EQ(folder_.read("signals"), "begun\nsaved\n");
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_EQ(jobs().front().state, JobState::stopped);
  EXPECT_EQ(jobs().front().exit_code, 130);
}

INSTANTIATE_TEST_SUITE_P(AtEveryPoint, StopCrashTest, ::testing::Values("order: row", "order: delivered"));

struct SupervisorCrash {
  std::string point;
  JobState state;
  int runs;
};
void PrintTo(const SupervisorCrash& crash, std::ostream* to) { *to << crash.point; }

class SupervisorCrashTest : public CrashPointsTest, public ::testing::WithParamInterface<SupervisorCrash> {};

TEST_P(SupervisorCrashTest, TheJobIsNeverRunTwiceAndItsStateSaysWhatIsKnown) {
  {
    const CrashAt crash(GetParam().point);
    ASSERT_EQ(serve({"submit=1", "drain"}), 0) << said_;
  }
  ASSERT_EQ(serve({"drain"}), 0) << said_;
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_EQ(jobs().front().state, GetParam().state) << name(jobs().front().state);
  EXPECT_EQ(jobs().front().attempt, 1);
  EXPECT_EQ(runs()[1], GetParam().runs);
}

INSTANTIATE_TEST_SUITE_P(AtEveryPoint, SupervisorCrashTest,
                         ::testing::Values(SupervisorCrash{"supervisor: before the lock", JobState::failed, 0},
                                           SupervisorCrash{"supervisor: locked", JobState::failed, 0},
                                           SupervisorCrash{"supervisor: forked", JobState::failed, 0},
                                           SupervisorCrash{"supervisor: process written", JobState::lost, 0},
                                           SupervisorCrash{"supervisor: begun", JobState::lost, 1},
                                           SupervisorCrash{"supervisor: ended", JobState::lost, 1},
                                           SupervisorCrash{"supervisor: exit written", JobState::done, 1}));

}  // namespace
}  // namespace troupe::service
