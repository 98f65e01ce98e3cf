#include "service/jobs/job_store.hpp"

#include <sys/mount.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::service {
namespace {

JobSpec spec_of(const std::string& name, std::int64_t priority = 0) {
  return {.name = name, .kind = JobKind::train, .config = "[run]\nname = \"ü\"\n", .priority = priority};
}

TEST(JobStoreTest, AJobIsReadBackAsItWasStored) {
  const tests::Folder folder;
  const auto path = folder.file("jobs.sqlite");
  Job job;
  {
    auto store = JobStore::open(path);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    JobSpec spec{.name = "größe",
                 .kind = JobKind::launch,
                 .command = {"python3", "a b.py", "\"'"},
                 .priority = -3,
                 .nodes = "h1:4242",
                 .workers = 4,
                 .user = "anna"};
    auto submitted = store->submit(spec, JobState::queued, "2026-01-02T03:04:05Z");
    ASSERT_TRUE(submitted.has_value()) << submitted.error().message;
    job = *submitted;
    job.state = JobState::failed;
    job.started = "2026-01-02T03:04:06Z";
    job.ended = "2026-01-02T03:04:07Z";
    job.exit_code = 137;
    job.error = "it broke";
    job.run = "grid/20260102-030406-a";
    job.attempt = 2;
    job.resume = job.kill = true;
    job.process = ProcessIdentity{4711, 123456789012ULL};
    ASSERT_TRUE(store->save(job, "2026-01-02T03:04:07Z", "ended").has_value());
  }
  auto store = JobStore::open(path);
  ASSERT_TRUE(store.has_value()) << store.error().message;
  const auto found = store->find(job.id);
  ASSERT_TRUE(found.has_value() && found->has_value());
  const auto& read = **found;
  EXPECT_EQ(read.spec.name, job.spec.name);
  EXPECT_EQ(read.spec.kind, job.spec.kind);
  EXPECT_EQ(read.spec.config, job.spec.config);
  EXPECT_EQ(read.spec.command, job.spec.command);
  EXPECT_EQ(read.spec.priority, -3);
  EXPECT_EQ(read.spec.nodes, "h1:4242");
  EXPECT_EQ(read.spec.workers, 4);
  EXPECT_EQ(read.spec.user, "anna");
  EXPECT_EQ(read.state, JobState::failed);
  EXPECT_EQ(read.submitted, "2026-01-02T03:04:05Z");
  EXPECT_EQ(read.started, job.started);
  EXPECT_EQ(read.ended, job.ended);
  EXPECT_EQ(read.exit_code, 137);
  EXPECT_EQ(read.error, "it broke");
  EXPECT_EQ(read.run, job.run);
  EXPECT_EQ(read.attempt, 2);
  EXPECT_TRUE(read.resume && read.kill);
  EXPECT_EQ(read.process, job.process);
  const auto history = store->history(job.id);
  ASSERT_TRUE(history.has_value());
  ASSERT_EQ(history->size(), 2U);
  EXPECT_EQ((*history)[0].event, "submitted by anna");
  EXPECT_EQ((*history)[1].event, "ended");
}

TEST(JobStoreTest, TheNextJobHasTheHighestPriorityAndIsTheOldestOfThose) {
  auto store = JobStore::open(":memory:");
  ASSERT_TRUE(store.has_value());
  for (const auto& [name, priority] : {std::pair{"a", 0}, {"b", 5}, {"c", 5}, {"d", -1}})
    ASSERT_TRUE(store->submit(spec_of(name, priority), JobState::queued, "t").has_value());
  ASSERT_TRUE(store->submit(spec_of("e", 9), JobState::stopped, "t").has_value());
  std::string order;
  for (auto next = store->next(); next && *next; next = store->next()) {
    order += (*next)->spec.name;
    (*next)->state = JobState::running;
    ASSERT_TRUE(store->save(**next, "t", "begins").has_value());
  }
  EXPECT_EQ(order, "bcad");
  EXPECT_EQ(store->active()->size(), 4U);
  EXPECT_EQ(store->list()->front().spec.name, "e") << "newest first";
}

TEST(JobStoreTest, TheIdOfADeletedJobIsNotUsedAgain) {
  auto store = JobStore::open(":memory:");
  ASSERT_TRUE(store.has_value());
  const auto first = store->submit(spec_of("a"), JobState::queued, "t");
  ASSERT_TRUE(first.has_value() && store->remove(first->id).has_value());
  EXPECT_FALSE(store->find(first->id)->has_value());
  EXPECT_TRUE(store->history(first->id)->empty());
  const auto second = store->submit(spec_of("b"), JobState::queued, "t");
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(second->id, first->id);
}

TEST(JobStoreTest, AStoreOfALaterVersionIsRefused) {
  const tests::Folder folder;
  const auto path = folder.file("jobs.sqlite");
  ASSERT_TRUE(JobStore::open(path).has_value());
  store::Database::open(path, true)->run("PRAGMA user_version=99");
  const auto store = JobStore::open(path);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, core::Errc::corrupt);
}

TEST(JobStoreTest, ADamagedStoreIsRefusedWithAdviceThatHoldsForIt) {
  const tests::Folder folder;
  const auto store = JobStore::open(folder.write("jobs.sqlite", std::string(8192, 'x')));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, core::Errc::corrupt);
  EXPECT_NE(store.error().message.find("move it away"), std::string::npos) << store.error().message;
  EXPECT_EQ(store.error().message.find("rebuild"), std::string::npos) << "nothing else has the jobs";
}

TEST(JobStoreTest, AFailedCallLeavesTheStoreUsable) {
  const tests::Folder folder;
  const auto path = folder.file("jobs.sqlite");
  auto store = JobStore::open(path);
  ASSERT_TRUE(store.has_value());
  ASSERT_TRUE(store->submit(spec_of("a"), JobState::queued, "t").has_value());
  store::Database::open(path, true)->run("ALTER TABLE history RENAME TO elsewhere");
  EXPECT_FALSE(store->submit(spec_of("b"), JobState::queued, "t").has_value());
  store::Database::open(path, true)->run("ALTER TABLE elsewhere RENAME TO history");
  ASSERT_TRUE(store->submit(spec_of("c"), JobState::queued, "t").has_value());
  const auto jobs = store->list();
  ASSERT_TRUE(jobs.has_value());
  ASSERT_EQ(jobs->size(), 2U) << "the job whose history could not be written is not there either";
  EXPECT_EQ(jobs->front().spec.name, "c");
}

TEST(JobStoreTest, OnAFullDiskJobsEndAndAreRemoved) {
  const tests::Folder folder;
  const auto disk = folder.file("disk");
  std::filesystem::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  struct Unmount {
    std::string path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } const unmount{disk};
  {
    auto store = JobStore::open(disk + "/jobs.sqlite");
    ASSERT_TRUE(store.has_value()) << store.error().message;
    auto queued = store->submit(spec_of("a"), JobState::queued, "t").value();
    const auto done = store->submit(spec_of("b"), JobState::stopped, "t").value();
    std::ofstream(disk + "/log") << std::string(std::size_t{5} << 20, 'x');

    const auto refused = store->submit(spec_of("c"), JobState::queued, "t");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, core::Errc::no_space);
    EXPECT_EQ(store->save(queued, "t", "priority 0").error().code, core::Errc::no_space) << "the room is for ends";

    queued.state = JobState::stopped;
    const auto stopped = store->save(queued, "t", "stop requested");
    EXPECT_TRUE(stopped.has_value()) << stopped.error().message;
    const auto removed = store->remove(done.id);
    EXPECT_TRUE(removed.has_value()) << removed.error().message;

    std::filesystem::remove(disk + "/log");
    ASSERT_TRUE(store->submit(spec_of("d"), JobState::queued, "t").has_value());
    ASSERT_TRUE(store->remove(queued.id).has_value());
  }
  EXPECT_EQ(std::filesystem::file_size(disk + "/jobs.sqlite.room"), ReservedRoom::kBytes) << "kept again";
  EXPECT_EQ(JobStore::open(disk + "/jobs.sqlite")->list()->size(), 1U);
}

}  // namespace
}  // namespace troupe::service
