#include "service/jobs/job_folder.hpp"

#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::service {
namespace {

using OutcomeKind = AttemptOutcome::Kind;

class JobFolderTest : public ::testing::Test {
 protected:
  JobFolderTest() { EXPECT_TRUE(job_.create().has_value()); }
  OutcomeKind observe(std::int64_t attempt) {
    const auto outcome = job_.observe(attempt);
    EXPECT_TRUE(outcome.has_value());
    return outcome ? outcome->kind : OutcomeKind::active;
  }
  tests::Folder folder_;
  JobFolder job_{folder_.file("jobs/7")};
};

TEST_F(JobFolderTest, AnAttemptWithoutATraceIsFenced) {
  EXPECT_EQ(observe(1), OutcomeKind::never_began);
  const auto fence = job_.exit();
  ASSERT_TRUE(fence.has_value());
  EXPECT_EQ(fence->attempt, 1);
  EXPECT_TRUE(fence->never_began);
  EXPECT_EQ(observe(1), OutcomeKind::never_began) << "the second look finds the fence";
  EXPECT_EQ(observe(2), OutcomeKind::never_began) << "a fence is of one attempt";
}

TEST_F(JobFolderTest, AnAttemptIsActiveWhileTheLockIsHeldWhateverTheFilesSay) {
  const auto lock = job_.try_lock();
  ASSERT_TRUE(lock.has_value() && lock->has_value());
  EXPECT_EQ(observe(1), OutcomeKind::active);
  EXPECT_FALSE(job_.exit().has_value()) << "no fence";
  ASSERT_TRUE(job_.write(ExitRecord{.attempt = 1}).has_value());
  EXPECT_EQ(observe(1), OutcomeKind::active) << "processes that it has started are still there";
}

TEST_F(JobFolderTest, TheLockExcludesASecondHolderInTheSameProcess) {
  const auto first = job_.try_lock();
  ASSERT_TRUE(first.has_value() && first->has_value());
  const auto second = job_.try_lock();
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->has_value());
}

TEST_F(JobFolderTest, AProcessWithoutAnExitHasVanished) {
  ASSERT_TRUE(job_.write(ProcessRecord{3, {::getpid(), 5}, {1, 2}}).has_value());
  EXPECT_EQ(observe(3), OutcomeKind::vanished);
  EXPECT_FALSE(job_.exit().has_value());
  EXPECT_EQ(observe(4), OutcomeKind::never_began) << "that process is of the attempt before";
}

TEST_F(JobFolderTest, AnExitIsReadBack) {
  ASSERT_TRUE(job_.write(ExitRecord{.attempt = 2, .code = 78, .error = "no \"x\"\n"}).has_value());
  const auto outcome = job_.observe(2);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, OutcomeKind::ended);
  EXPECT_EQ(outcome->exit.code, 78);
  EXPECT_EQ(outcome->exit.error, "no \"x\"\n");
}

TEST_F(JobFolderTest, ABrokenRecordIsNone) {
  folder_.write("jobs/7/process.json", "{\"attempt\": 1");
  folder_.write("jobs/7/exit.json", "[1, 2]");
  EXPECT_FALSE(job_.process().has_value());
  EXPECT_FALSE(job_.exit().has_value());
}

/// A directory is there and cannot be read, as a file of a process that has no descriptor left.
TEST_F(JobFolderTest, WhereARecordCannotBeReadNothingIsDecided) {
  for (const auto* name : {"process.json", "exit.json"}) {
    const auto path = folder_.file(std::string("jobs/7/") + name);
    std::filesystem::create_directory(path);
    const auto outcome = job_.observe(1);
    ASSERT_FALSE(outcome.has_value()) << name;
    EXPECT_EQ(outcome.error().code, core::Errc::io);
    EXPECT_NE(outcome.error().message.find(path), std::string::npos) << outcome.error().message;
    std::filesystem::remove(path);
  }
  EXPECT_FALSE(job_.exit().has_value()) << "no fence";
}

TEST_F(JobFolderTest, TheLogIsReadInParts) {
  EXPECT_EQ(job_.read_log(5, 10)->next, 5U) << "no log yet";
  folder_.write("jobs/7/log", "one\ntwo\nthree\n\n");
  const auto part = job_.read_log(4, 6);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->text, "two\nth");
  EXPECT_EQ(part->next, 10U);
  EXPECT_EQ(job_.read_log(10, 100)->text, "ree\n\n");
  EXPECT_EQ(job_.read_log(100, 100)->text, "");
  EXPECT_EQ(job_.last_log_line(), "three");
}

TEST(ProcessIdentityTest, AProcessIsKnownByItsNumberAndItsStart) {
  const auto self = identity_of(::getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_TRUE(is_alive(*self));
  EXPECT_FALSE(is_alive({self->pid, self->start + 1})) << "another process with this number";
  EXPECT_FALSE(identity_of(0).has_value());
  EXPECT_TRUE(send_signal(*self, 0));
  EXPECT_FALSE(send_signal({self->pid, self->start + 1}, SIGKILL));
}

}  // namespace
}  // namespace troupe::service
