// A grid while other processes train its runs. tests/apps tests child processes with the real program.
#include "apps/grid/pool/run_grid.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/grid/pool/stopping.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "tests/apps/grid/folder.hpp"

namespace troupe::grid {
namespace {

using testing::HasSubstr;

/// Calls `then` at the n-th reading, or `always` at each, and advances by `step` at each reading.
class Clock final : public core::Clock {
 public:
  explicit Clock(core::Duration step, int n = 0, std::function<void()> then = nullptr)
      : step_(step), left_(n), then_(std::move(then)) {}
  Clock(core::Duration step, std::function<void()> always) : step_(step), left_(0), always_(std::move(always)) {}
  [[nodiscard]] core::Duration now() const noexcept override {
    if (always_) always_();
    if (left_ > 0 && --left_ == 0) then_();
    return now_ += step_;
  }

 private:
  core::Duration step_;
  mutable core::Duration now_{};
  mutable int left_;
  std::function<void()> then_, always_;
};

/// A grid of one run, whose directory exists and is locked by a writer.
class RunGridTest : public testing::Test {
 protected:
  RunGridTest() {
    auto file = parse("base = \"" + base_ + "\"\n[grid]\nstrategy.tau = [2]\n", "g.toml", experiment::schema());
    EXPECT_TRUE(file);
    grid_ = grid::resolve(std::move(*file), {"run.dir=" + folder_.file("runs")}, nullptr).value();
    folder_.write("runs/g/1/config.toml", grid_.runs[0].settings.config.to_toml());
    folder_.write("runs/g/1/metrics.jsonl", "{\"kind\":\"started\",\"t\":0}\n");
    folder_.write("runs/g/1/checkpoints/step-000000000001.safetensors", "");
    writer_ = experiment::DirectoryLock::take(directory_).value();
  }

  /// Of a stand-in for `troupe train`. `$here` is the test's folder, `$told` the file that --directory-file names.
  void children_do(const std::string& script) {
    executable_ = folder_.write("train", R"sh(#!/bin/bash
here=$(dirname "$0")
echo "$*" >> "$here/calls"
while [ $# -gt 0 ]; do
  case $1 in
    --directory-file) told=$2; shift ;;
    *.toml) config=$1 ;;
  esac
  shift
done
)sh" + script);
    std::filesystem::permissions(executable_, std::filesystem::perms::owner_all);
  }
  void give_up_directory() {
    std::filesystem::remove_all(directory_);
    writer_.reset();
  }

  core::Result<GridEnd> run(const core::Clock& clock, std::stop_token stop = {}) {
    GridOptions options;
    options.pool.executable = executable_;
    options.pool.slots = slots_;
    options.estimates_s.resize(grid_.runs.size());
    options.pool.clock = &clock;
    Progress progress(ProgressMode::plain, said_);
    return run_grid(grid_, options, progress, stop);
  }
  std::string said() {
    std::string text(4096, '\0');
    std::rewind(said_);
    text.resize(std::fread(text.data(), 1, text.size(), said_));
    return text;
  }
  ~RunGridTest() override { std::fclose(said_); }

  Folder folder_;
  std::string executable_ = folder_.file("none");  // no process may be started
  std::vector<std::string> slots_{""};
  std::string base_ = folder_.write("base.toml", kSmallBase);
  std::string directory_ = folder_.file("runs/g/1");
  ResolvedGrid grid_;
  std::optional<experiment::DirectoryLock> writer_;
  std::FILE* said_ = std::tmpfile();
};

TEST_F(RunGridTest, WaitsForARunThatAnotherProcessTrainsAndTakesItsResult) {
  const Clock clock(std::chrono::milliseconds(1), 4, [&] {
    folder_.write("runs/g/1/summary.json", "{\"run\": \"runs/g/1\"}\n");
    folder_.write("runs/g/1/metrics.jsonl", "{\"kind\":\"ended\",\"t\":1,\"error\":null}\n");
    writer_.reset();
  });
  const auto end = run(clock);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->statuses[0].status, Status::done);
  EXPECT_FALSE(end->interrupted);
  EXPECT_THAT(said(), HasSubstr("waiting for "));
  EXPECT_THAT(said(), HasSubstr(" trains in " + directory_));
  EXPECT_THAT(folder_.read("runs/g/results.csv"), HasSubstr(",done,0,"));
}

TEST_F(RunGridTest, StopsWaitingForARunThatAnotherProcessNeverEnds) {
  const Clock clock(std::chrono::minutes(4));
  const auto end = run(clock);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->statuses[0].status, Status::failed);
  EXPECT_EQ(end->statuses[0].exit_code, 75);
  EXPECT_THAT(end->statuses[0].error, HasSubstr(" trains in " + directory_ + ": try again when it has ended"));
  EXPECT_THAT(folder_.read("runs/g/results.csv"), HasSubstr(",failed,75,"));
}

TEST_F(RunGridTest, AnInterruptEndsTheWait) {
  std::stop_source stop;
  const Clock clock(std::chrono::milliseconds(1), 3, [&] { stop.request_stop(); });
  const auto end = run(clock, stop.get_token());
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->interrupted);
  EXPECT_EQ(end->statuses[0].status, Status::running);
}

TEST_F(RunGridTest, ARunInterruptedByAnotherProcessStaysResumable) {
  std::filesystem::remove_all(directory_);
  for (const bool begun : {true, false}) {
    executable_ =
        folder_.write("interrupted", std::string("#!/bin/sh\n") + (begun ? "echo '{\"run\": \"runs/g/2\"}'\n" : "") +
                                         "echo 'troupe: interrupted' >&2\nexit 130\n");
    std::filesystem::permissions(executable_, std::filesystem::perms::owner_all);
    const auto end = run(Clock(std::chrono::milliseconds(1)));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->statuses[0].status, begun ? Status::interrupted : Status::waiting);
    EXPECT_TRUE(end->interrupted);
  }
}

/// On nodes the exit code is also that of a lost node.
TEST_F(RunGridTest, ARunThatAnotherProcessTakesMeanwhileDoesNotBeginAnewOnAnotherNode) {
  slots_ = {"a:1", "b:1"};
  writer_.reset();
  children_do(R"sh([ -z "$config" ] || exit 1
touch "$here/asked"
until [ -e "$here/taken" ] || [ $SECONDS -ge 120 ]; do :; done
echo 'troupe: process 1 is at work' >&2
exit 75
)sh");
  const auto look = [&] {
    if (!writer_ && std::filesystem::exists(folder_.file("asked")) && !std::filesystem::exists(folder_.file("taken"))) {
      writer_ = experiment::DirectoryLock::take(directory_).value();
      folder_.write("taken", "");
    } else if (writer_ && (said().find("waiting for") != std::string::npos ||
                           said().find("goes on elsewhere") != std::string::npos)) {
      folder_.write("runs/g/1/summary.json", "{\"run\": \"runs/g/1\"}\n");
      folder_.write("runs/g/1/metrics.jsonl", "{\"kind\":\"ended\",\"t\":1,\"error\":null}\n");
      writer_.reset();
    }
  };
  const auto end = run(Clock(std::chrono::milliseconds(1), look));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->statuses[0].status, Status::done);
  const auto calls = folder_.read("calls");
  EXPECT_EQ(std::ranges::count(calls, '\n'), 1) << calls;
  EXPECT_THAT(said(), testing::Not(HasSubstr("goes on elsewhere")));
}

TEST_F(RunGridTest, ANodeThatIsLostAfterItsRunHasEndedDoesNotBeginItAnew) {
  slots_ = {"a:1"};
  give_up_directory();
  children_do(R"sh(dir=$here/runs/g/2
mkdir "$dir" || exit 1
echo '{"kind":"ended","error":null}' > "$dir/metrics.jsonl"
echo "{\"run\": \"$dir\"}" | tee "$dir/summary.json"
echo 'troupe: lost' >&2
exit 75
)sh");
  const auto end = run(Clock(std::chrono::seconds(1)));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->statuses[0].status, Status::done);
  EXPECT_EQ(end->statuses[0].exit_code, 0);
  const auto calls = folder_.read("calls");
  EXPECT_EQ(std::ranges::count(calls, '\n'), 1) << calls;
}

/// A child whose run has come to its end; what it does `then` is its process's end.
std::string run_that_is_done(std::string_view then) {
  constexpr std::string_view kRun = R"sh(dir=$here/runs/g/2
mkdir -p "$dir"
echo "$dir" > "$told"
echo '{"kind":"ended","error":null}' > "$dir/metrics.jsonl"
echo '{"run": "it", "wall_s": 1}' > "$dir/summary.json"
)sh";
  return std::string(kRun).append(then);
}

TEST_F(RunGridTest, ARunWhoseProcessFailsAfterItsEndCountsByItsRecords) {
  give_up_directory();
  std::ptrdiff_t processes = 0;
  for (const auto* then : {
           "echo 'troupe: cannot write to standard output: No space left on device' >&2; exit 74",
           R"sh(echo "{\"run\": \"$dir\"}"; echo 'troupe: an actor has not ended in time' >&2; exit 75)sh",
       }) {
    SCOPED_TRACE(then);
    std::filesystem::remove_all(folder_.file("runs/g/2"));
    children_do(run_that_is_done(then));
    const auto end = run(Clock(std::chrono::milliseconds(1)));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(std::ranges::count(folder_.read("calls"), '\n'), ++processes);
    EXPECT_EQ(end->statuses[0].status, Status::done);
    EXPECT_EQ(end->statuses[0].directory, folder_.file("runs/g/2"));
    EXPECT_EQ(end->statuses[0].summary, R"({"run": "it", "wall_s": 1})");
    EXPECT_THAT(folder_.read("runs/g/results.csv"), HasSubstr(",done,0,"));
  }
}

/// As of a run of a sweep that goes on from a rung.
TEST_F(RunGridTest, AnEndOfAnEarlierSessionIsNotOneOfThis) {
  writer_.reset();
  folder_.write("runs/g/1/metrics.jsonl", "{\"kind\":\"ended\",\"error\":null}\n");
  folder_.write("runs/g/1/summary.json", "{\"run\": \"it\"}\n");
  children_do("echo \"$here/runs/g/1\" > \"$told\"\necho 'troupe: cannot write' >&2\nexit 74\n");
  const Clock clock(std::chrono::milliseconds(1));
  const auto pool = RunPool::make({.executable = executable_, .clock = &clock}, grid_.directory).value();
  ASSERT_TRUE(pool->begin(0, grid_.runs[0], directory_));
  std::vector<RunPool::Ended> ended;
  while (ended.empty()) ended = pool->wait(Stopping::kTick, -1);
  EXPECT_EQ(ended[0].status.status, Status::failed);
  EXPECT_EQ(ended[0].status.exit_code, 74);
  EXPECT_EQ(ended[0].status.error, "cannot write");
}

/// One run ends, and the next cannot be started while another trains.
TEST_F(RunGridTest, AGridThatFailsItselfLetsItsRunsSaveFirst) {
  slots_ = {"", ""};
  give_up_directory();
  auto file = parse("base = \"" + base_ + "\"\n[grid]\nstrategy.tau = [2, 3, 4]\n", "g.toml", experiment::schema());
  ASSERT_TRUE(file);
  grid_ = grid::resolve(std::move(*file), {"run.dir=" + folder_.file("runs")}, nullptr).value();
  children_do(R"sh(if mkdir "$here/first" 2> /dev/null; then
  until [ -e "$here/trains" ] || [ $SECONDS -ge 120 ]; do :; done
  rm "$0"
  echo "{\"run\": \"$here/runs/g/2\"}"
  exit
fi
trap 'touch "$here/saved"; echo "{\"run\": \"$here/runs/g/3\"}"; exit 130' INT
touch "$here/trains"
until [ $SECONDS -ge 120 ]; do read -t 0.01 < <(:); done
)sh");
  const auto end = run(Clock(std::chrono::milliseconds(1)));
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("cannot start " + executable_));
  EXPECT_TRUE(std::filesystem::exists(folder_.file("saved"))) << "killed before it could save";
  EXPECT_THAT(said(), HasSubstr("no further run begins; runs under way save a checkpoint"));
  EXPECT_THAT(folder_.read("runs/g/results.csv"), HasSubstr(",interrupted,130,"));
  for (const auto& entry : std::filesystem::directory_iterator(grid_.directory))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".children")) << entry.path();
}

TEST_F(RunGridTest, WhatAKilledGridLeftIsRemoved) {
  folder_.write("runs/g/.children-abcdef/0.out", "");
  std::stop_source stop;
  stop.request_stop();
  ASSERT_TRUE(run(Clock(std::chrono::milliseconds(1)), stop.get_token()));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("runs/g/.children-abcdef")));
}

TEST_F(RunGridTest, AnotherGridInTheDirectoryIsNamed) {
  const auto other = experiment::DirectoryLock::take(grid_.directory);
  ASSERT_TRUE(other);
  const auto end = run(Clock(std::chrono::milliseconds(1)));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, core::Errc::timeout);
  EXPECT_THAT(end.error().message, HasSubstr(grid_.directory + ": process "));
}

}  // namespace
}  // namespace troupe::grid
