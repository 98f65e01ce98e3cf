#include "apps/grid/status_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/directory/directory_lock.hpp"
#include "tests/apps/grid/folder.hpp"

namespace troupe::grid {
namespace {

using testing::ElementsAre;

const std::string kStarted = R"({"kind":"started","t":0})"
                             "\n";
const std::string kEnded = R"({"kind":"ended","t":1,"error":null})"
                           "\n";
std::string ended_by(const std::string& code) {
  return R"({"kind":"ended","t":1,"error":{"code":")" + code +
         R"(","message":"so it is"}})"
         "\n";
}

class StatusIndexTest : public testing::Test {
 protected:
  RunStatus run_status(const std::string& metrics, bool checkpoint) const {
    folder_.write("run/metrics.jsonl", metrics);
    folder_.write("run/summary.json", "{\"run\": \"r\"}\n");
    if (checkpoint) folder_.write("run/checkpoints/step-1.safetensors", "");
    return run_status_of(folder_.file("run"));
  }
  Folder folder_;
};

TEST_F(StatusIndexTest, ARunThatEndedIsDone) {
  const auto done = run_status(kStarted + kEnded, true);
  EXPECT_EQ(done.status, Status::done);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.summary, "{\"run\": \"r\"}");
}

TEST_F(StatusIndexTest, DivergenceIsAResult) {
  const auto diverged = run_status(kStarted + ended_by("diverged"), true);
  EXPECT_EQ(diverged.status, Status::diverged);
  EXPECT_EQ(diverged.exit_code, 70);
  EXPECT_EQ(diverged.error, "so it is");
  EXPECT_EQ(run_status(kStarted + ended_by("internal"), true).status,
            Status::interrupted);  // exit 70 as well, but a bug
}

TEST_F(StatusIndexTest, AResumableRunIsInterrupted) {
  for (const auto& metrics :
       {kStarted, kStarted + ended_by("interrupted"), kStarted + ended_by("no_space"), kStarted + kEnded + kStarted})
    EXPECT_EQ(run_status(metrics, true).status, Status::interrupted) << metrics;
}

TEST_F(StatusIndexTest, WithoutACheckpointARunBeginsAnew) {
  EXPECT_EQ(run_status(kStarted, false).status, Status::waiting);
  EXPECT_EQ(run_status(kStarted + ended_by("no_space"), false).status, Status::waiting);
}

TEST_F(StatusIndexTest, RunWithAWriterIsRunning) {
  for (const auto& metrics : {kStarted, kStarted + kEnded, kStarted + ended_by("interrupted")}) {
    folder_.write("run/metrics.jsonl", metrics);
    const auto lock = experiment::DirectoryLock::take(folder_.file("run"));
    ASSERT_TRUE(lock);
    const auto running = run_status(metrics, true);
    EXPECT_EQ(running.status, Status::running);
    EXPECT_EQ(running.directory, folder_.file("run"));
    EXPECT_THAT(running.error, testing::EndsWith(" trains in " + folder_.file("run")));
  }
  EXPECT_EQ(run_status(kStarted + kEnded, true).status, Status::done);
}

TEST_F(StatusIndexTest, MatchesDirectoriesBySettings) {
  const auto base = folder_.write("base.toml", kSmallBase);
  auto file = parse("base = \"" + base + "\"\n[grid]\nstrategy.tau = [1, 2, 3]\n", "g.toml", experiment::schema());
  ASSERT_TRUE(file.has_value());
  const auto grid = grid::resolve(std::move(*file), {"run.dir=" + folder_.file("runs")}, nullptr);
  ASSERT_TRUE(grid.has_value()) << grid.error().message;
  EXPECT_EQ(read_status_index(*grid)->statuses.size(), 3u);  // no status yet

  const auto directory = [&](const std::string& name, std::size_t run, const std::string& metrics) {
    folder_.write("runs/g/" + name + "/config.toml", grid->runs[run].settings.config.to_toml());
    folder_.write("runs/g/" + name + "/metrics.jsonl", metrics);
    folder_.write("runs/g/" + name + "/summary.json", "{}\n");
    folder_.write("runs/g/" + name + "/checkpoints/step-1.safetensors", "");
  };
  directory("1-whatever", 2, kStarted + kEnded);
  directory("2-whatever", 2, kStarted);  // a later directory with less progress
  directory("3-whatever", 0, kStarted + ended_by("interrupted"));
  folder_.write("runs/g/4-other/config.toml", std::string(kSmallBase));
  const auto status_index = read_status_index(*grid);
  ASSERT_TRUE(status_index.has_value());
  std::vector<Status> statuses;
  for (const auto& run_status : status_index->statuses) statuses.push_back(run_status.status);
  EXPECT_THAT(statuses, ElementsAre(Status::interrupted, Status::waiting, Status::done));
  EXPECT_EQ(status_index->statuses[2].directory, folder_.file("runs/g/1-whatever"));
  EXPECT_THAT(status_index->foreign, ElementsAre(folder_.file("runs/g/4-other")));
}

TEST_F(StatusIndexTest, ADirectoryThatCannotBeLookedAtIsAnIoError) {
  const auto base = folder_.write("base.toml", kSmallBase);
  auto file = parse("base = \"" + base + "\"\n[grid]\nstrategy.tau = [1]\n", "g.toml", experiment::schema());
  const auto grid = grid::resolve(std::move(*file), {"run.dir=" + folder_.file("runs")}, nullptr);
  ASSERT_TRUE(grid.has_value()) << grid.error().message;
  std::filesystem::create_directories(folder_.file("runs"));
  std::filesystem::create_symlink("g", grid->directory);  // to itself
  const auto status_index = read_status_index(*grid);
  ASSERT_FALSE(status_index);
  EXPECT_EQ(status_index.error().code, core::Errc::io);
  EXPECT_THAT(status_index.error().message, testing::HasSubstr(grid->directory));
}

TEST(StatusTest, StatusFollowsFromTheExitCode) {
  EXPECT_EQ(status_of(0), Status::done);
  EXPECT_EQ(status_of(70), Status::diverged);
  EXPECT_EQ(status_of(130), Status::interrupted);
  for (const int code : {2, 65, 71, 74, 75, 78, 137}) EXPECT_EQ(status_of(code), Status::failed);
  EXPECT_EQ(errc_of(65), core::Errc::data);
  EXPECT_EQ(errc_of(71), core::Errc::out_of_memory);
  EXPECT_EQ(errc_of(137), core::Errc::internal);
}

}  // namespace
}  // namespace troupe::grid
