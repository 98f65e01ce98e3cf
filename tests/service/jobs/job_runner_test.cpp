#include "service/jobs/job_runner.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "service/jobs/job_process.hpp"
#include "tests/folder.hpp"
#include "tests/store/full_disk.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using tests::eventually;

/// A runner whose jobs execute the command of their specification, with the attempt as the last word.
class JobRunnerTest : public ::testing::Test {
 protected:
  JobOptions options(std::size_t slots = 1) {
    JobOptions options;
    options.paths = {.executable = "troupe", .run_directory = folder_.path()};
    options.supervisor = {TROUPE_JOB_HOST, "supervise"};
    options.slots = slots;
    options.command = [](const Job& job, const JobFolder& folder) {
      if (job.resume) return std::vector<std::string>{"/bin/sh", "-c", "echo resumed " + job.run};
      auto command = job.spec.command;
      command.push_back(folder.directory_file(job.attempt));
      return command;
    };
    return options;
  }
  void open(JobOptions options) {
    runner_.reset();
    auto runner = JobRunner::open(std::move(options));
    ASSERT_TRUE(runner.has_value()) << runner.error().message;
    runner_ = std::move(*runner);
  }
  std::int64_t submit(std::vector<std::string> command, std::int64_t priority = 0, bool start = true) {
    const auto job = runner_->submit(
        {.name = "a", .kind = JobKind::launch, .command = std::move(command), .priority = priority}, start);
    EXPECT_TRUE(job.has_value()) << job.error().message;
    return job ? job->id : 0;
  }
  std::int64_t submit_shell(const std::string& script, std::int64_t priority = 0, bool start = true) {
    return submit({"/bin/sh", "-c", script}, priority, start);
  }
  std::int64_t submit_training() { return submit({TROUPE_JOB_HOST, "train", folder_.file("signals")}); }
  Job job(std::int64_t id) {
    const auto found = runner_->find(id);
    return found && *found ? **found : Job{};
  }
  bool reaches(std::int64_t id, JobState state) {
    return eventually([&] { return job(id).state == state; });
  }
  bool begun(const std::string& file = "signals") {
    return eventually([&] { return folder_.read(file) == "begun\n"; });
  }

  tests::Folder folder_;
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(JobRunnerTest, AJobRunsAndItsEndIsStored) {
  open(options());
  const auto good = submit_shell("echo fine"), bad = submit_shell("echo 'troupe: x.toml:3: bad'; exit 78");
  ASSERT_TRUE(reaches(good, JobState::done));
  ASSERT_TRUE(reaches(bad, JobState::failed));
  EXPECT_EQ(job(good).exit_code, 0);
  EXPECT_EQ(job(bad).exit_code, 78);
  EXPECT_EQ(job(bad).error, "troupe: x.toml:3: bad");
  EXPECT_EQ(runner_->log(good, 0, 100)->text, "fine\n");
  EXPECT_FALSE(job(good).started.empty() || job(good).ended.empty());
}

TEST_F(JobRunnerTest, MoreJobsThanThereIsRoomWaitAndTheHighestPriorityIsNext) {
  open(options(1));
  const auto first = submit_training();
  ASSERT_TRUE(begun());
  const auto append = [&](const char* word) { return fmt::format("echo {} >> {}", word, folder_.file("order")); };
  const auto low = submit_shell(append("low")), high = submit_shell(append("high"), 2);
  const auto raised = submit_shell(append("raised"));
  ASSERT_TRUE(runner_->set_priority(raised, 3).has_value());
  EXPECT_EQ(job(low).state, JobState::queued);
  ASSERT_TRUE(runner_->stop(first).has_value());
  for (const auto id : {low, high, raised}) ASSERT_TRUE(reaches(id, JobState::done));
  EXPECT_EQ(folder_.read("order"), "raised\nhigh\nlow\n");
}

TEST_F(JobRunnerTest, JobsRunAtOnceWhileThereIsRoom) {
  open(options(2));
  const auto script = [&](const char* mine, const char* other) {  // each ends only when both run
    return fmt::format("touch {0}/{1}; until [ -e {0}/{2} ]; do :; done", folder_.path(), mine, other);
  };
  const auto a = submit_shell(script("a", "b")), b = submit_shell(script("b", "a"));
  EXPECT_TRUE(reaches(a, JobState::done));
  EXPECT_TRUE(reaches(b, JobState::done));
}

TEST_F(JobRunnerTest, AStoppedJobSavesAndIsResumedWithItsIdAndRun) {
  open(options());
  std::filesystem::create_directories(folder_.file("20260102-030405-a"));
  const auto id = submit({"/bin/sh", "-c",
                          fmt::format("echo {}/20260102-030405-a > \"$0\"; exec {} train {}", folder_.path(),
                                      TROUPE_JOB_HOST, folder_.file("signals"))});
  ASSERT_TRUE(begun());
  ASSERT_TRUE(eventually([&] { return job(id).run == "20260102-030405-a"; }));
  ASSERT_TRUE(runner_->checkpoint(id).has_value());
  ASSERT_TRUE(eventually([&] { return folder_.read("signals") == "begun\ncheckpoint\n"; }));
  EXPECT_EQ(job(id).state, JobState::running);
  ASSERT_TRUE(runner_->stop(id).has_value());
  ASSERT_TRUE(reaches(id, JobState::stopped));
  EXPECT_EQ(folder_.read("signals"), "begun\ncheckpoint\nsaved\n");
  EXPECT_EQ(job(id).exit_code, 130);
  ASSERT_TRUE(runner_->resume(id).has_value());
  ASSERT_TRUE(reaches(id, JobState::done));
  EXPECT_EQ(runner_->log(id, 0, 1000)->text, "resumed 20260102-030405-a\n");
  EXPECT_EQ(job(id).attempt, 2);
  const auto details = runner_->details(id);
  ASSERT_TRUE(details.has_value() && details->has_value());
  std::string events;
  for (const auto& line : (*details)->history)
    if (!line.event.starts_with("process ")) events += line.event + "; ";
  EXPECT_EQ(
      events,
      "submitted; attempt 1 begins; run 20260102-030405-a; checkpoint requested; stop requested; ended with exit code "
      "130; resume requested; attempt 2 begins; ended with exit code 0; ");
}

TEST_F(JobRunnerTest, AStopWithoutACheckpointKills) {
  open(options());
  const auto id = submit({TROUPE_JOB_HOST, "family", folder_.file("pids")});
  ASSERT_TRUE(eventually([&] { return std::ranges::count(folder_.read("pids"), '\n') == 2; }));
  ASSERT_TRUE(runner_->stop(id, false).has_value());
  ASSERT_TRUE(reaches(id, JobState::stopped));
  EXPECT_EQ(job(id).exit_code, 128 + SIGKILL);
}

TEST_F(JobRunnerTest, ASecondStopKillsAJobThatDoesNotHeedTheFirst) {
  open(options());
  const auto id = submit_shell("trap '' INT; echo begun > " + folder_.file("signals") + "; while :; do :; done");
  ASSERT_TRUE(begun());
  ASSERT_TRUE(runner_->stop(id).has_value());
  EXPECT_EQ(job(id).state, JobState::stopping);
  ASSERT_TRUE(runner_->stop(id).has_value());
  EXPECT_TRUE(reaches(id, JobState::stopped));
}

/// The job itself may be what fills the disk.
TEST_F(JobRunnerTest, AFullDiskKeepsNoJobFromBeingStoppedAndTheOrderIsStoredLater) {
  open(options());
  const auto id = submit_training();
  ASSERT_TRUE(begun());
  {
    const tests::FullDisk full;
    EXPECT_EQ(runner_->checkpoint(id + 1).error().code, core::Errc::config) << "it can be read";
    const auto stopped = runner_->stop(id);
    ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
    EXPECT_EQ(stopped->state, JobState::stopping);
    EXPECT_TRUE(eventually([&] { return folder_.read("signals") == "begun\nsaved\n"; }));
    EXPECT_EQ(job(id).state, JobState::stopping);
    EXPECT_EQ(runner_->list()->front().state, JobState::stopping);
  }
  ASSERT_TRUE(reaches(id, JobState::stopped));
  EXPECT_EQ(job(id).exit_code, 130);
  const auto details = runner_->details(id);
  ASSERT_TRUE(details.has_value() && details->has_value());
  EXPECT_EQ(std::ranges::count((*details)->history, "stop requested", &JobHistoryLine::event), 1);
}

TEST_F(JobRunnerTest, OnAFullDiskASecondStopKillsToo) {
  open(options());
  const auto id = submit_shell("trap '' INT; echo begun > " + folder_.file("signals") + "; while :; do :; done");
  ASSERT_TRUE(begun());
  ASSERT_TRUE(eventually([&] { return job(id).process.has_value(); }));
  const auto supervisor = *job(id).process;
  {
    const tests::FullDisk full;
    ASSERT_TRUE(runner_->stop(id).has_value());
    ASSERT_TRUE(runner_->stop(id).has_value());
    EXPECT_TRUE(eventually([&] { return !is_alive(supervisor); }));
  }
  EXPECT_TRUE(reaches(id, JobState::stopped));
  EXPECT_EQ(job(id).exit_code, 128 + SIGKILL);
}

TEST_F(JobRunnerTest, AJobThatIsNotStartedWaitsForItsUser) {
  open(options());
  const auto id = submit_shell("echo fine", 0, false);
  EXPECT_EQ(job(id).state, JobState::stopped);
  ASSERT_TRUE(runner_->start(id).has_value());
  EXPECT_TRUE(reaches(id, JobState::done));
  ASSERT_TRUE(runner_->start(id).has_value()) << "anew";
  EXPECT_TRUE(eventually([&] { return job(id).attempt == 2 && job(id).state == JobState::done; }));
}

TEST_F(JobRunnerTest, OrdersThatTheStateDoesNotAllowAreRefused) {
  open(options());
  const auto id = submit_training();
  ASSERT_TRUE(begun());
  EXPECT_EQ(runner_->start(id).error().code, core::Errc::usage);
  EXPECT_EQ(runner_->remove(id).error().code, core::Errc::usage);
  EXPECT_EQ(runner_->stop(id + 1).error().code, core::Errc::config) << "no such job";
  ASSERT_TRUE(runner_->stop(id).has_value());
  ASSERT_TRUE(reaches(id, JobState::stopped));
  EXPECT_EQ(runner_->stop(id).error().code, core::Errc::usage);
}

TEST_F(JobRunnerTest, ADeletedJobLeavesNothing) {
  open(options());
  const auto id = submit_shell("echo fine");
  ASSERT_TRUE(reaches(id, JobState::done));
  ASSERT_TRUE(std::filesystem::exists(folder_.file(fmt::format(".service/jobs/{}", id))));
  ASSERT_TRUE(runner_->remove(id).has_value());
  EXPECT_FALSE(runner_->find(id)->has_value());
  EXPECT_FALSE(std::filesystem::exists(folder_.file(fmt::format(".service/jobs/{}", id))));
}

TEST_F(JobRunnerTest, AProgramThatCannotBeStartedFailsTheJob) {
  auto broken = options();
  broken.supervisor = {"/nonexistent/troupe"};
  open(std::move(broken));
  const auto id = submit_shell("echo fine");
  ASSERT_TRUE(reaches(id, JobState::failed));
  EXPECT_NE(job(id).error.find("/nonexistent/troupe"), std::string::npos) << job(id).error;
  EXPECT_EQ(job(id).exit_code, std::nullopt);
}

TEST_F(JobRunnerTest, JobsGoOnWithoutTheServiceAndTheNextOneFollowsThem) {
  open(options(2));
  const auto goes_on = submit_training();
  ASSERT_TRUE(begun());
  ASSERT_TRUE(eventually([&] { return job(goes_on).process.has_value(); }));
  const auto process = job(goes_on).process;
  const auto ends = submit_shell("until [ -e " + folder_.file("go") + " ]; do :; done; exit 3");
  ASSERT_TRUE(eventually([&] { return job(ends).process.has_value(); }));
  const auto ending = *job(ends).process;
  runner_.reset();
  folder_.write("go", "");
  ASSERT_TRUE(eventually([&] { return !is_alive(ending); }));
  open(options(2));
  ASSERT_TRUE(reaches(ends, JobState::failed));
  EXPECT_EQ(job(ends).exit_code, 3);
  EXPECT_EQ(job(goes_on).state, JobState::running);
  EXPECT_EQ(job(goes_on).process, process) << "the same";
  ASSERT_TRUE(runner_->stop(goes_on).has_value());
  ASSERT_TRUE(reaches(goes_on, JobState::stopped));
  EXPECT_EQ(folder_.read("signals"), "begun\nsaved\n");
}

TEST_F(JobRunnerTest, AFolderThatIsRemovedMeanwhileDoesNotStartTheJobAgain) {
  open(options());
  const auto id = submit_training();
  ASSERT_TRUE(begun());
  ASSERT_TRUE(eventually([&] { return job(id).process.has_value(); }));
  const auto process = *job(id).process;
  runner_.reset();
  std::filesystem::remove_all(folder_.file(".service/jobs"));
  open(options());
  ASSERT_TRUE(
      eventually([&] { return std::filesystem::exists(folder_.file(fmt::format(".service/jobs/{}/exit.json", id))); }));
  EXPECT_EQ(job(id).state, JobState::running);
  ::kill(process.pid, SIGUSR2);
  ASSERT_TRUE(reaches(id, JobState::failed)) << "its supervisor still writes down the end";
  EXPECT_EQ(job(id).exit_code, 128 + SIGKILL);
  EXPECT_EQ(folder_.read("signals"), "begun\n") << "once";
}

TEST_F(JobRunnerTest, AProgramWithoutItsSupervisorGetsNoSecondInterruptFromTheNextService) {
  open(options());
  const auto signals = folder_.file("signals");
  const auto id =
      submit_shell(fmt::format("trap 'echo int >> {0}' INT; echo begun > {0}; while :; do :; done", signals));
  ASSERT_TRUE(begun());
  ASSERT_TRUE(runner_->stop(id).has_value());
  ASSERT_TRUE(eventually([&] { return folder_.read("signals") == "begun\nint\n"; }));
  const auto supervisor = *job(id).process;
  runner_.reset();
  ::kill(supervisor.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_alive(supervisor); }));
  open(options(2));
  ASSERT_TRUE(reaches(submit_shell("echo fine"), JobState::done)) << "the first one was looked at, too";
  EXPECT_EQ(job(id).state, JobState::stopping);
  ASSERT_TRUE(runner_->stop(id).has_value()) << "the second stop kills";
  ASSERT_TRUE(reaches(id, JobState::stopped));
  EXPECT_EQ(folder_.read("signals"), "begun\nint\n");
}

/// As after a restart of the host: the number of the job's session is that of processes that have nothing to do with it. In the worst case they
/// have also begun as long after the start of the host.
TEST_F(JobRunnerTest, AKillSparesASessionThatHasTheNumberOfOneThatEnded) {
  open(options());
  const auto id = submit_training();
  ASSERT_TRUE(begun());
  ASSERT_TRUE(eventually([&] { return job(id).process.has_value(); }));
  auto stopping = job(id);
  runner_.reset();
  const JobFolder place(folder_.file(fmt::format(".service/jobs/{}", id)));
  const auto ended = place.process();
  ASSERT_TRUE(ended.has_value());
  ::kill(ended->supervisor.pid, SIGKILL);
  ::kill(ended->program.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_alive(ended->supervisor) && !is_alive(ended->program); }));

  const JobFolder other(folder_.file("other"));
  ASSERT_TRUE(other.create().has_value());
  auto stranger = JobProcess::start(other, 1, {TROUPE_JOB_HOST, "supervise"},
                                    {TROUPE_JOB_HOST, "train", folder_.file("other/signals")});
  ASSERT_TRUE(stranger.has_value());
  ASSERT_TRUE(begun("other/signals"));
  const auto alive = other.process();
  ASSERT_TRUE(alive.has_value());
  stopping.state = JobState::stopping;
  stopping.kill = true;
  for (const auto start : {std::uint64_t{1}, alive->supervisor.start}) {
    ASSERT_TRUE(place.write(ProcessRecord{1, {alive->supervisor.pid, start}, ended->program}).has_value());
    ASSERT_TRUE(JobStore::open(folder_.file(".service/jobs.sqlite"))->save(stopping, "now", "stop").has_value());
    open(options());
    ASSERT_TRUE(reaches(id, JobState::stopped));
    EXPECT_TRUE(is_alive(alive->program));
    runner_.reset();
  }
  ASSERT_TRUE(stranger->kill());
  EXPECT_TRUE(eventually([&] { return stranger->supervisor_ended(); }));
}

TEST_F(JobRunnerTest, OneServiceAtATimeHasADirectory) {
  open(options());
  const auto second = JobScheduler::open(options());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, core::Errc::timeout);
}

TEST_F(JobRunnerTest, EveryStoredChangeIsAnnounced) {
  std::mutex mutex;
  std::string states;
  auto told = options();
  told.on_change = [&](const Job& job) {
    const std::scoped_lock lock(mutex);
    const std::string state(name(job.state));
    if (!states.ends_with(state + " ")) states += state + " ";
  };
  open(std::move(told));
  ASSERT_TRUE(reaches(submit_shell("echo fine"), JobState::done));
  runner_.reset();
  EXPECT_EQ(states, "queued running done ");
}

}  // namespace
}  // namespace troupe::service
