#include "service/jobs/supervisor.hpp"

#include <csignal>
#include <sstream>

#include <gtest/gtest.h>

#include "service/jobs/job_process.hpp"
#include "tests/folder.hpp"
#include "tests/nodes/process.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using tests::eventually;
using Words = std::vector<std::string>;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() { EXPECT_TRUE(job_.create().has_value()); }

  JobProcess start(const Words& command, std::int64_t attempt = 1) {
    auto process = JobProcess::start(job_, attempt, {TROUPE_JOB_HOST, "supervise"}, command);
    EXPECT_TRUE(process.has_value()) << process.error().message;
    return std::move(*process);
  }
  /// The exit of this attempt after the end of its supervisor.
  ExitRecord end_of(JobProcess& process, std::int64_t attempt = 1) {
    EXPECT_TRUE(eventually([&] { return process.supervisor_ended(); }));
    const auto exit = job_.exit();
    EXPECT_TRUE(exit.has_value() && exit->attempt == attempt) << folder_.read("job/log");
    return exit.value_or(ExitRecord{});
  }
  bool has(const std::string& text) {
    return eventually([&] { return folder_.read("signals") == text; });
  }

  tests::Folder folder_;
  JobFolder job_{folder_.file("job")};
  const Words train_{TROUPE_JOB_HOST, "train", folder_.file("signals")};
};

TEST_F(SupervisorTest, TheExitCodeIsWrittenDown) {
  auto process = start({"/bin/sh", "-c", "echo out; echo err >&2; exit 78"});
  const auto end = end_of(process);
  EXPECT_EQ(end.code, 78);
  EXPECT_EQ(end.signal, 0);
  EXPECT_EQ(folder_.read("job/log"), "out\nerr\n");
}

TEST_F(SupervisorTest, ASignalIsWrittenDown) {
  auto process = start({"/bin/sh", "-c", "kill -SEGV $$"});
  EXPECT_EQ(end_of(process).signal, SIGSEGV);
}

TEST_F(SupervisorTest, AProgramThatIsMissingIsAnErrorThatNamesIt) {
  auto process = start({"/nonexistent/program"});
  const auto end = end_of(process);
  EXPECT_EQ(end.code, 127);
  EXPECT_EQ(end.error, "cannot start /nonexistent/program: No such file or directory");
}

TEST_F(SupervisorTest, TheProgramHoldsTheLockAndTheRecordNamesIt) {
  auto process = start(train_);
  ASSERT_TRUE(has("begun\n"));
  const auto record = job_.process();
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(is_alive(record->supervisor) && is_alive(record->program));
  EXPECT_FALSE(job_.try_lock()->has_value());
  ::kill(record->supervisor.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return process.supervisor_ended(); }));
  EXPECT_FALSE(job_.try_lock()->has_value()) << "the program goes on";
  EXPECT_EQ(job_.observe(1)->kind, AttemptOutcome::Kind::active);
  process.adopt(*record);
  EXPECT_TRUE(process.send(SIGINT)) << "now to the program itself";
  ASSERT_TRUE(has("begun\nsaved\n"));
  EXPECT_TRUE(eventually([&] { return job_.observe(1)->kind == AttemptOutcome::Kind::vanished; }));
}

TEST_F(SupervisorTest, OnlyTheFirstInterruptIsPassedOn) {
  // The program notes each SIGINT and goes on until it is killed: a shell, whose trap returns.
  const auto file = folder_.file("signals");
  auto process = start({"/bin/sh", "-c",
                        "trap 'echo int >> " + file + "' INT; trap 'echo usr1 >> " + file +
                            "; exit 0' USR1; echo begun >> " + file + "; while :; do :; done"});
  ASSERT_TRUE(has("begun\n"));
  for (int k = 0; k < 3; ++k) ASSERT_TRUE(process.send(SIGINT));
  ASSERT_TRUE(has("begun\nint\n"));
  ASSERT_TRUE(process.send(SIGINT));
  ASSERT_TRUE(process.send(SIGUSR2));
  EXPECT_EQ(end_of(process).signal, SIGKILL);
  EXPECT_EQ(folder_.read("signals"), "begun\nint\n");
}

TEST_F(SupervisorTest, ARequestToSaveReachesTheProgramAgainAndAgain) {
  auto process = start(train_);
  ASSERT_TRUE(has("begun\n"));
  ASSERT_TRUE(process.send(SIGUSR1));
  ASSERT_TRUE(has("begun\ncheckpoint\n"));
  ASSERT_TRUE(process.send(SIGUSR1));
  ASSERT_TRUE(has("begun\ncheckpoint\ncheckpoint\n"));
  ASSERT_TRUE(process.send(SIGINT));
  EXPECT_EQ(end_of(process).code, 130);
}

TEST_F(SupervisorTest, AKillEndsEveryProcessOfTheJobAlsoThoseOfOtherGroups) {
  auto process = start({TROUPE_JOB_HOST, "family", folder_.file("pids")});
  std::vector<pid_t> pids;
  ASSERT_TRUE(eventually([&] {
    std::istringstream text(folder_.read("pids"));
    pids.clear();
    for (pid_t pid = 0; text >> pid;) pids.push_back(pid);
    return pids.size() == 2;
  }));
  ASSERT_TRUE(process.kill());
  EXPECT_EQ(end_of(process).signal, SIGKILL);
  for (const auto pid : pids) EXPECT_FALSE(identity_of(pid).has_value()) << pid;
}

/// One that has a session of its own, and whose parent the kill ends, too.
TEST_F(SupervisorTest, AKillEndsAProcessThatHasLeftTheSession) {
  const auto pids = folder_.file("pids");
  auto process =
      start({"/bin/sh", "-c", "sh -c 'setsid sh -c \"echo \\$\\$ > " + pids + "; exec sleep 1000\" & wait' & wait"});
  pid_t pid = 0;
  ASSERT_TRUE(eventually([&] { return std::istringstream(folder_.read("pids")) >> pid && pid > 0; }));
  ASSERT_TRUE(identity_of(pid).has_value());
  ASSERT_TRUE(process.kill());
  EXPECT_EQ(end_of(process).signal, SIGKILL);
  EXPECT_FALSE(identity_of(pid).has_value());
}

TEST_F(SupervisorTest, AnAttemptDoesNotBeginWhereItCannotReadWhetherItMay) {
  std::filesystem::create_directory(folder_.file("job/exit.json"));
  auto process = start(train_);
  ASSERT_TRUE(eventually([&] { return process.supervisor_ended(); }));
  EXPECT_EQ(folder_.read("signals"), "");
  EXPECT_NE(folder_.read("job/log").find("exit.json"), std::string::npos) << "why";
}

TEST_F(SupervisorTest, AnAttemptThatWasFencedNeverBegins) {
  ASSERT_EQ(job_.observe(1)->kind, AttemptOutcome::Kind::never_began);
  auto process = start(train_, 1);
  ASSERT_TRUE(eventually([&] { return process.supervisor_ended(); }));
  EXPECT_EQ(folder_.read("signals"), "");
  EXPECT_FALSE(job_.process().has_value());
}

TEST_F(SupervisorTest, TheSecondSupervisorOfAnAttemptLeaves) {
  auto first = start({"/bin/sh", "-c", "echo run >> " + folder_.file("signals")});
  auto second = start({"/bin/sh", "-c", "echo run >> " + folder_.file("signals")});
  ASSERT_TRUE(eventually([&] { return first.supervisor_ended() && second.supervisor_ended(); }));
  EXPECT_EQ(folder_.read("signals"), "run\n");
}

TEST_F(SupervisorTest, AnAttemptWaitsForWhatIsLeftOfTheOneBefore) {
  auto lock = job_.try_lock();
  ASSERT_TRUE(lock.has_value() && lock->has_value());
  auto process = start({"/bin/sh", "-c", "echo run >> " + folder_.file("signals")});
  EXPECT_FALSE(process.supervisor_ended());
  EXPECT_EQ(folder_.read("signals"), "");
  lock->reset();
  EXPECT_EQ(end_of(process).code, 0);
  EXPECT_EQ(folder_.read("signals"), "run\n");
}

TEST_F(SupervisorTest, ASignalThatComesWhileItWaitsIsNotLost) {
  auto lock = job_.try_lock();
  ASSERT_TRUE(lock.has_value() && lock->has_value());
  auto process = start(train_);
  ASSERT_TRUE(process.send(SIGUSR2));
  tests::let_pass(std::chrono::milliseconds(200));  // it looks at the lock several times
  EXPECT_FALSE(process.supervisor_ended());
  lock->reset();
  EXPECT_EQ(end_of(process).signal, SIGKILL);
}

}  // namespace
}  // namespace troupe::service
