#include "apps/grid/pool/stopping.hpp"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/grid/folder.hpp"
#include "tests/wait.hpp"

namespace troupe::grid {
namespace {

/// Moves when the test says so.
class SetClock final : public core::Clock {
 public:
  [[nodiscard]] core::Duration now() const noexcept override { return now_; }
  core::Duration now_{};
};

/// A run of a stand-in for `troupe train` that ignores Ctrl-C once it says so, as one that hangs while it saves.
class StoppingTest : public testing::Test {
 protected:
  StoppingTest() {
    std::filesystem::permissions(train_, std::filesystem::perms::owner_all);
    pool_ = RunPool::make({.executable = train_, .clock = &clock_}, folder_.path()).value();
  }
  ~StoppingTest() override { std::fclose(said_); }
  void begin() {
    ASSERT_TRUE(pool_->begin(0, GridRun{}, "resumed"));
    ASSERT_TRUE(tests::eventually([&] { return std::filesystem::exists(folder_.file("begun")); }));
  }
  std::string said() {
    std::string text(4096, '\0');
    std::rewind(said_);
    text.resize(std::fread(text.data(), 1, text.size(), said_));
    return text;
  }

  Folder folder_;
  std::string train_ = folder_.write("train", R"sh(#!/bin/bash
here=$(dirname "$0")
if [ -e "$here/hangs" ]; then trap '' INT; else trap 'exit 130' INT; fi
touch "$here/begun"
while :; do read -t 0.01 < <(:); done
)sh");
  SetClock clock_;
  std::unique_ptr<RunPool> pool_;
  std::FILE* said_ = std::tmpfile();
  Progress progress_{ProgressMode::plain, said_};
  std::stop_source stop_;
};

TEST_F(StoppingTest, ARequestWakesTheWaitAndAsksTheRunsToSave) {
  Stopping stopping(stop_.get_token(), *pool_, progress_, clock_);
  begin();
  EXPECT_FALSE(stopping.requested());
  stop_.request_stop();
  EXPECT_TRUE(stopping.requested());
  int waits = 0;  // so many last longer than the deadline if they end by the tick
  ASSERT_TRUE(tests::eventually([&] {
    EXPECT_TRUE(stopping.wait().empty()) << "the run trains on";
    return ++waits == 400;
  })) << "the request wakes each wait until it is proceeded with";
  stopping.proceed();
  std::vector<RunPool::Ended> ended;
  ASSERT_TRUE(tests::eventually([&] { return !(ended = stopping.wait()).empty(); }));
  EXPECT_EQ(ended[0].status.exit_code, 130);
  EXPECT_EQ(pool_->count(), 0U);
  EXPECT_THAT(said(), testing::HasSubstr("runs under way save a checkpoint"));
}

TEST_F(StoppingTest, ARunThatHangsWhileItSavesIsKilledAfterTheDeadlineAndNotBefore) {
  folder_.write("hangs", "");
  Stopping stopping(stop_.get_token(), *pool_, progress_, clock_);
  begin();
  stop_.request_stop();
  stopping.proceed();
  clock_.now_ += std::chrono::seconds(static_cast<int>(kSavingDeadline_s));
  stopping.proceed();
  EXPECT_TRUE(stopping.wait().empty());
  clock_.now_ += std::chrono::seconds(1);
  stopping.proceed();
  std::vector<RunPool::Ended> ended;
  ASSERT_TRUE(tests::eventually([&] { return !(ended = stopping.wait()).empty(); }));
  EXPECT_EQ(ended[0].status.exit_code, 128 + SIGKILL);
}

TEST_F(StoppingTest, ARequestBeforeItExistsCountsToo) {
  stop_.request_stop();
  Stopping stopping(stop_.get_token(), *pool_, progress_, clock_);
  begin();
  EXPECT_TRUE(stopping.requested());
  stopping.proceed();
  ASSERT_TRUE(tests::eventually([&] { return !stopping.wait().empty(); }));
}

}  // namespace
}  // namespace troupe::grid
