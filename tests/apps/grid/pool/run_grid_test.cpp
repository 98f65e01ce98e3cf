// A grid while other processes train its runs. tests/apps tests child processes with the real program.
#include "apps/grid/pool/run_grid.hpp"

#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/directory/directory_lock.hpp"
#include "tests/apps/grid/folder.hpp"

namespace troupe::grid {
namespace {

using testing::HasSubstr;

/// Calls `then` at the n-th reading, and advances by `step` at each reading.
class Clock final : public core::Clock {
 public:
  explicit Clock(core::Duration step, int n = 0, std::function<void()> then = nullptr)
      : step_(step), left_(n), then_(std::move(then)) {}
  [[nodiscard]] core::Duration now() const noexcept override {
    if (left_ > 0 && --left_ == 0) then_();
    return now_ += step_;
  }

 private:
  core::Duration step_;
  mutable core::Duration now_{};
  mutable int left_;
  std::function<void()> then_;
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

  core::Result<GridEnd> run(const core::Clock& clock, std::stop_token stop = {}) {
    GridOptions options;
    options.pool.executable = executable_;
    options.estimates_s = {0};
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
