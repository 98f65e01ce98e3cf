// One process writes into a run's directory, any number read it: the real program while another one trains there.
#include <sys/mount.h>

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/directory/directory_lock.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kConfig = tests::small_config("[run]\nepochs = 2", R"([train]
lr = 0.1
[strategy]
name = "easgd"
tau = 4
)");

/// All files in a directory: sizes, modification times, contents.
std::map<std::string, std::string> everything_in(const std::string& directory) {
  std::map<std::string, std::string> all;
  const auto note = [&](const fs::path& path) {
    const auto changed = std::to_string(fs::last_write_time(path).time_since_epoch().count());
    all[path.string()] = changed + (fs::is_regular_file(path) ? " " + contents(path.string()) : "");
  };
  note(directory);
  for (const auto& entry : fs::recursive_directory_iterator(directory)) note(entry.path());
  return all;
}

class WritersTest : public testing::Test {
 protected:
  std::vector<std::string> train(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"train", config_, "--plain", "--set", "run.dir=" + folder_.file("runs")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string run() const { return fs::directory_iterator(folder_.file("runs"))->path().string(); }

  /// Every command that reads what a run or a grid has written.
  std::vector<std::vector<std::string>> readers(const std::string& run, const std::string& grid) const {
    std::vector<std::vector<std::string>> all{
        {"eval", run},
        {"eval", a_checkpoint(run)},
        {"simulate", run + "/config.toml", "--from", run, "--cluster", cluster_},
        {"check", run + "/config.toml"},
        {"grid", grid_, "--dry-run", "--set", "run.dir=" + fs::path(grid).parent_path().string()}};
    if (std::system("gnuplot --version >/dev/null 2>&1") == 0) {
      all.push_back({"plot", run, "--output", folder_.file("pictures")});
      all.push_back({"plot", grid, "--output", folder_.file("pictures")});
    }
    return all;
  }

  static std::string a_checkpoint(const std::string& run) {
    for (const auto& entry : fs::directory_iterator(run + "/checkpoints"))
      if (entry.path().extension() == ".safetensors") return entry.path().string();
    return {};
  }

  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", kConfig);
  std::string cluster_ = folder_.write("c.toml", "[hosts.node]\ncount = 2\nstep_ms = 2.0\n");
  std::string grid_ = folder_.write("g.toml", "base = \"" + config_ + "\"\n[grid]\nstrategy.tau = [2, 4]\n");
};

TEST_F(WritersTest, ASecondResumeIsRefusedAndDoesNotDisturbTheFirst) {
  auto arguments = train({"--set", "run.epochs=100000"});
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  Outcome second;
  const auto first = run_until(arguments, "epoch 1/", [&](pid_t process) {
    const auto before = contents(run() + "/config.toml");
    second = troupe({"train", "--resume", run(), "--quiet", "--set", "run.epochs=1"});
    EXPECT_THAT(second.err, HasSubstr(run() + ": process " + std::to_string(process) + " on host "));
    EXPECT_EQ(contents(run() + "/config.toml"), before);
    ::kill(process, SIGINT);
  });
  EXPECT_EQ(second.code, 75) << second.err;
  EXPECT_TRUE(is_one_line(second)) << second.err;
  EXPECT_EQ(first.code, 130) << first.err;
  // A lock that died with its process blocks no other process.
  const auto after = troupe_interrupted({"train", "--resume", run(), "--plain"}, "epoch ");
  EXPECT_EQ(after.code, 130) << after.err;
  EXPECT_EQ(after.err.find("going back one generation"), std::string::npos) << after.err;
}

TEST_F(WritersTest, ResumeRemovesTemporariesOfAKilledWriter) {
  ASSERT_EQ(troupe(train()).code, 0);
  const std::vector<std::string> left{run() + "/config.toml.host-1-00000000-2.tmp", run() + "/plan.json.tmp",
                                      run() + "/checkpoints/step-000000000999.safetensors.host-1-00000000-3.tmp"};
  for (const auto& path : left) std::ofstream(path) << "half";
  {
    const auto lock = experiment::DirectoryLock::take(run());
    ASSERT_TRUE(lock);
    EXPECT_EQ(troupe({"train", "--resume", run(), "--quiet", "--set", "run.epochs=3"}).code, 75);
    for (const auto& path : left) EXPECT_TRUE(fs::exists(path)) << path << " is another writer's";
  }
  EXPECT_EQ(troupe({"train", "--resume", run(), "--quiet", "--set", "run.epochs=3"}).code, 0);
  for (const auto& path : left) EXPECT_FALSE(fs::exists(path)) << path;
}

TEST_F(WritersTest, ReadersChangeNothing) {
  ASSERT_EQ(troupe(train()).code, 0);
  ASSERT_EQ(troupe({"grid", grid_, "--quiet", "--set", "run.dir=" + folder_.file("grids")}).code, 0);
  // A checkpoint that a live run has half written.
  std::ofstream(run() + "/checkpoints/step-000000000999.safetensors.host-1-00000000-3.tmp") << "half";
  const auto run_before = everything_in(folder_.file("runs")), grid_before = everything_in(folder_.file("grids"));
  for (const auto& command : readers(run(), folder_.file("grids/g"))) {
    const auto outcome = troupe(command);
    EXPECT_EQ(outcome.code, 0) << command[0] << ": " << outcome.err;
    EXPECT_EQ(everything_in(folder_.file("runs")), run_before) << command[0];
    EXPECT_EQ(everything_in(folder_.file("grids")), grid_before) << command[0];
  }
}

TEST_F(WritersTest, AReplayAddsItsResultAndChangesNothingElse) {
  ASSERT_EQ(troupe(train()).code, 0);
  auto before = everything_in(run());
  const auto outcome = troupe({"replay", run()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  auto after = everything_in(run());
  EXPECT_EQ(after.erase(run() + "/replay.json"), 1U);
  before.erase(run());
  after.erase(run());  // the directory's own time
  EXPECT_EQ(after, before);
}

TEST_F(WritersTest, ReadersWorkOnAReadOnlyDisk) {
  const auto disk = folder_.file("disk");
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64m") != 0) GTEST_SKIP() << "mounting a disk needs root";
  struct Unmount {
    std::string path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } const unmount{disk};
  ASSERT_EQ(troupe(train({"--set", "run.dir=" + disk + "/runs"})).code, 0);
  ASSERT_EQ(troupe({"grid", grid_, "--quiet", "--set", "run.dir=" + disk + "/grids"}).code, 0);
  const auto run = fs::directory_iterator(disk + "/runs")->path().string();
  ASSERT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
  for (const auto& command : readers(run, disk + "/grids/g")) {
    const auto outcome = troupe(command);
    EXPECT_EQ(outcome.code, 0) << command[0] << ": " << outcome.err;
  }
  const auto replay = troupe({"replay", run});
  EXPECT_EQ(replay.code, 0) << replay.err;
  EXPECT_THAT(replay.err, HasSubstr("warning: the replay's result is not kept with the run: "));
  const auto resumed = troupe({"train", "--resume", run, "--quiet", "--set", "run.epochs=3"});
  EXPECT_EQ(resumed.code, 74) << resumed.err;
  EXPECT_TRUE(is_one_line(resumed)) << resumed.err;
}

}  // namespace
}  // namespace troupe::apps
