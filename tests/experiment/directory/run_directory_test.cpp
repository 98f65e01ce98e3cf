#include "experiment/directory/run_directory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "experiment/settings.hpp"
#include "tests/forbidden.hpp"

namespace troupe::experiment {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    std::string pattern = (fs::temp_directory_path() / "troupe-run-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  ~RunDirectoryTest() override { fs::remove_all(root_); }

  [[nodiscard]] RunDirectory make(const std::string& name = "a") const {
    return RunDirectory::create(root_ + "/runs", name, kNow).value();
  }

  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

  static constexpr std::time_t kNow = 1'767'323'045;  // 2026-01-02 03:04:05 UTC
  std::string root_;
};

core::Config config(const std::vector<std::string>& overrides = {}) {
  return core::Config::parse(schema(), "[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\n", "a.toml", overrides)
      .value();
}

TEST_F(RunDirectoryTest, IsNamedByTimeAndRun) {
  const auto run = make("mnist-easgd");
  EXPECT_EQ(run.path(), root_ + "/runs/20260102-030405-mnist-easgd");
  EXPECT_TRUE(fs::is_directory(run.checkpoints()));
}

TEST_F(RunDirectoryTest, TakenNamesGetASuffix) {
  const auto first = make().path();
  EXPECT_EQ(make().path(), first + "-2");
  EXPECT_EQ(make().path(), first + "-3");
}

TEST_F(RunDirectoryTest, RunsThatBeginTogetherGetTheirOwn) {
  constexpr int kRuns = 8;
  std::vector<std::string> paths(kRuns);
  {
    std::vector<std::jthread> threads;
    for (auto& path : paths) threads.emplace_back([&] { path = make().path(); });
  }
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), static_cast<std::size_t>(kRuns));
}

TEST_F(RunDirectoryTest, ConfigurationRoundTripsAndTakesOverrides) {
  const auto run = make();
  const auto saved = config({"strategy.name=easgd", "strategy.tau=3"});
  ASSERT_TRUE(run.write_config(saved));
  EXPECT_EQ(run.read_config(schema(), {}).value(), saved);
  const auto longer = run.read_config(schema(), {"run.epochs=9"}).value();
  EXPECT_EQ(std::get<std::int64_t>(longer.value("run.epochs")), 9);
  EXPECT_EQ(std::get<std::int64_t>(longer.value("strategy.tau")), 3);
}

TEST_F(RunDirectoryTest, FilesAreReplacedAndLeaveNoTemporary) {
  const auto run = make();
  write(run.summary_file() + ".host-1-00000000-1.tmp", "of a process that was killed");
  ASSERT_TRUE(run.write_summary("{\"steps\": 1}"));
  ASSERT_TRUE(run.write_summary("{\"steps\": 2}"));
  ASSERT_TRUE(run.remove_temporaries());
  EXPECT_EQ(read(run.summary_file()), "{\"steps\": 2}\n");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(run.path())) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"checkpoints", "summary.json"}));
}

TEST_F(RunDirectoryTest, OpensTheDirectoryOfARun) {
  const auto run = make();
  ASSERT_TRUE(run.write_config(config()));
  EXPECT_EQ(RunDirectory::open(run.path()).value().path(), run.path());
  EXPECT_EQ(RunDirectory::open(run.path() + "//").value().path(), run.path());
}

TEST_F(RunDirectoryTest, ADirectoryThatMayNotBeReadIsNoWrongPath) {
  const auto run = make();
  ASSERT_TRUE(run.write_config(config()));
  const tests::Forbidden forbidden(run.path());
  const auto opened = RunDirectory::open(run.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Errc::io);
  EXPECT_EQ(opened.error().message, "cannot read " + run.path() + "/config.toml: Permission denied");
}

TEST_F(RunDirectoryTest, RefusesDirectoriesOfNoRun) {
  const auto missing = RunDirectory::open(root_ + "/none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Errc::config);
  EXPECT_EQ(missing.error().message, root_ + "/none does not exist: give a run's directory");
  const auto other = RunDirectory::open(root_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::Errc::config);
  EXPECT_NE(other.error().message.find("no config.toml"), std::string::npos);
  write(root_ + "/file", "");
  EXPECT_EQ(RunDirectory::open(root_ + "/file").error().message, root_ + "/file is a file: give a run's directory");
}

TEST_F(RunDirectoryTest, IsFoundFromACheckpoint) {
  const auto run = make();
  ASSERT_TRUE(run.write_config(config()));
  const auto checkpoint = run.checkpoints() + "/step-0000000010.safetensors";
  write(checkpoint, "");
  EXPECT_EQ(RunDirectory::containing(checkpoint).value().path(), run.path());
  EXPECT_EQ(RunDirectory::containing(run.path()).value().path(), run.path());
  EXPECT_EQ(RunDirectory::containing(root_ + "/none").error().code, core::Errc::config);
  write(root_ + "/stray.safetensors", "");
  EXPECT_EQ(RunDirectory::containing(root_ + "/stray.safetensors").error().code, core::Errc::config);
}

TEST_F(RunDirectoryTest, UnreadablePlacesAreIoErrorsWithThePath) {
  const auto run = make();
  fs::create_symlink("plan.json", run.path() + "/plan.json");  // to itself: too many levels, for every user
  const auto plan = run.read_plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, core::Errc::io);
  EXPECT_NE(plan.error().message.find(run.path() + "/plan.json"), std::string::npos) << plan.error().message;

  fs::create_symlink("config.toml", root_ + "/config.toml");
  write(root_ + "/stray.safetensors", "");
  const auto stray = RunDirectory::containing(root_ + "/stray.safetensors");
  ASSERT_FALSE(stray);
  EXPECT_EQ(stray.error().code, core::Errc::io) << stray.error().message;
}

TEST_F(RunDirectoryTest, UnwritablePlacesAreIoErrorsWithThePath) {
  write(root_ + "/file", "");
  const auto run = RunDirectory::create(root_ + "/file/runs", "a", kNow);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::Errc::io);
  EXPECT_NE(run.error().message.find(root_ + "/file/runs"), std::string::npos) << run.error().message;
}

TEST_F(RunDirectoryTest, JournalSegmentsAreNumberedOn) {
  const auto run = make();
  EXPECT_EQ(run.next_journal()->path, run.path() + "/journal-0001.bin");
  write(run.path() + "/journal-0001.bin", "");
  write(run.path() + "/journal-0009.bin", "");
  for (const auto* other : {"journal-.bin", "journal-x.bin", "journal-0012.txt", "my-journal-0013.bin"})
    write(run.path() + "/" + other, "");
  EXPECT_EQ(run.next_journal()->path, run.path() + "/journal-0010.bin");
}

TEST_F(RunDirectoryTest, ASegmentKeepsTheConfigurationThatItWasRecordedUnder) {
  const auto run = make();
  const auto first = run.next_journal().value();
  ASSERT_TRUE(run.write_config(first, config({"run.epochs=1"})));
  EXPECT_EQ(first.config, run.path() + "/journal-0001.config.toml");
  EXPECT_TRUE(run.journals()->empty()) << "a configuration alone is no segment";
  write(first.path, "");
  ASSERT_TRUE(run.write_config(config({"run.epochs=2"})));
  write(run.next_journal()->path, "");
  const auto segments = run.journals().value();
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(core::Config::load(schema(), segments[0].config, {}).value(), config({"run.epochs=1"}));
  EXPECT_EQ(segments[1].config, "") << "an older program's";
}

TEST_F(RunDirectoryTest, ASegmentKeepsThePlanOfItsSession) {
  const auto run = make();
  EXPECT_EQ(run.read_plan().value(), std::nullopt);
  const auto first = run.next_journal().value();
  EXPECT_EQ(first.plan, run.path() + "/journal-0001.plan.json");
  ASSERT_TRUE(run.write_plan(first, "{\"a\":1}"));
  write(first.path, "");
  ASSERT_TRUE(run.write_plan("{\"a\":2}"));
  write(run.next_journal()->path, "");
  const auto segments = run.journals().value();
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(run.read_plan(segments[0]).value(), "{\"a\":1}");
  EXPECT_EQ(run.read_plan(segments[1]).value(), "{\"a\":2}") << "an older program's: the run's";
}

// ---- metrics.jsonl

TEST_F(RunDirectoryTest, MetricsAreAppendedLineByLine) {
  const auto path = root_ + "/metrics.jsonl";
  {
    auto metrics = MetricsWriter::open(path).value();
    ASSERT_TRUE(metrics.append("{\"a\":1}"));
    ASSERT_TRUE(metrics.append("{\"a\":2}"));
  }
  auto again = MetricsWriter::open(path).value();
  ASSERT_TRUE(again.append("{\"a\":3}"));
  EXPECT_EQ(read(path), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
}

TEST_F(RunDirectoryTest, ACutOffLineIsRemoved) {
  const auto path = root_ + "/metrics.jsonl";
  write(path, "{\"a\":1}\n" + std::string(10'000, 'x'));  // longer than the block that is read backwards
  ASSERT_TRUE(MetricsWriter::open(path).value().append("{\"a\":2}"));
  EXPECT_EQ(read(path), "{\"a\":1}\n{\"a\":2}\n");
  write(path, "no line at all");
  ASSERT_TRUE(MetricsWriter::open(path).value().append("{}"));
  EXPECT_EQ(read(path), "{}\n");
}

/// Imitates a full disk by a limit on file size.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_ = SIG_DFL;
};

TEST_F(RunDirectoryTest, AFailingDiskIsReportedOnceAndLinesStayWhole) {
  const auto path = root_ + "/metrics.jsonl";
  auto metrics = MetricsWriter::open(path).value();
  ASSERT_TRUE(metrics.append("first"));
  {
    const SizeLimit full(10);  // "first\n" and four bytes of the next line
    const auto error = metrics.append("second line");
    ASSERT_FALSE(error);
    EXPECT_EQ(error.error().code, core::Errc::io);
    EXPECT_NE(error.error().message.find(path), std::string::npos);
    EXPECT_TRUE(metrics.append("third line"));
    EXPECT_EQ(metrics.dropped_lines(), 2u);
    EXPECT_EQ(read(path), "first\n");
  }
  ASSERT_TRUE(metrics.append("fourth"));
  EXPECT_EQ(read(path), "first\nfourth\n");
  const SizeLimit full(14);
  EXPECT_FALSE(metrics.append("a new failure is told again"));
}

}  // namespace
}  // namespace troupe::experiment
