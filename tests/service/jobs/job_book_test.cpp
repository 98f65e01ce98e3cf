#include "service/jobs/job_book.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::service {
namespace {

JobSpec spec_of(const std::string& name, std::int64_t priority = 0) {
  return {.name = name, .kind = JobKind::train, .config = "[run]\nname = \"ü\"\n", .priority = priority};
}

TEST(JobBookTest, AJobIsReadBackAsItWasStored) {
  const tests::Folder folder;
  const auto path = folder.file("jobs.sqlite");
  Job job;
  {
    auto book = JobBook::open(path);
    ASSERT_TRUE(book.has_value()) << book.error().message;
    JobSpec spec{.name = "größe",
                 .kind = JobKind::launch,
                 .command = {"python3", "a b.py", "\"'"},
                 .priority = -3,
                 .nodes = "h1:4242",
                 .workers = 4,
                 .user = "anna"};
    auto submitted = book->submit(spec, JobState::queued, "2026-01-02T03:04:05Z");
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
    ASSERT_TRUE(book->save(job, "2026-01-02T03:04:07Z", "ended").has_value());
  }
  auto book = JobBook::open(path);
  ASSERT_TRUE(book.has_value()) << book.error().message;
  const auto found = book->find(job.id);
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
  const auto history = book->history(job.id);
  ASSERT_TRUE(history.has_value());
  ASSERT_EQ(history->size(), 2U);
  EXPECT_EQ((*history)[0].event, "submitted by anna");
  EXPECT_EQ((*history)[1].event, "ended");
}

TEST(JobBookTest, TheNextJobHasTheHighestPriorityAndIsTheOldestOfThose) {
  auto book = JobBook::open(":memory:");
  ASSERT_TRUE(book.has_value());
  for (const auto& [name, priority] : {std::pair{"a", 0}, {"b", 5}, {"c", 5}, {"d", -1}})
    ASSERT_TRUE(book->submit(spec_of(name, priority), JobState::queued, "t").has_value());
  ASSERT_TRUE(book->submit(spec_of("e", 9), JobState::stopped, "t").has_value());
  std::string order;
  for (auto next = book->next(); next && *next; next = book->next()) {
    order += (*next)->spec.name;
    (*next)->state = JobState::running;
    ASSERT_TRUE(book->save(**next, "t", "begins").has_value());
  }
  EXPECT_EQ(order, "bcad");
  EXPECT_EQ(book->active()->size(), 4U);
  EXPECT_EQ(book->list()->front().spec.name, "e") << "newest first";
}

TEST(JobBookTest, TheIdOfADeletedJobIsNotUsedAgain) {
  auto book = JobBook::open(":memory:");
  ASSERT_TRUE(book.has_value());
  const auto first = book->submit(spec_of("a"), JobState::queued, "t");
  ASSERT_TRUE(first.has_value() && book->remove(first->id).has_value());
  EXPECT_FALSE(book->find(first->id)->has_value());
  EXPECT_TRUE(book->history(first->id)->empty());
  const auto second = book->submit(spec_of("b"), JobState::queued, "t");
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(second->id, first->id);
}

TEST(JobBookTest, ABookOfALaterVersionIsRefused) {
  const tests::Folder folder;
  const auto path = folder.file("jobs.sqlite");
  ASSERT_TRUE(JobBook::open(path).has_value());
  store::Database::open(path, true)->run("PRAGMA user_version=99");
  const auto book = JobBook::open(path);
  ASSERT_FALSE(book.has_value());
  EXPECT_EQ(book.error().code, core::Errc::corrupt);
}

TEST(JobBookTest, AFailedCallLeavesTheBookUsable) {
  const tests::Folder folder;
  const auto path = folder.file("jobs.sqlite");
  auto book = JobBook::open(path);
  ASSERT_TRUE(book.has_value());
  ASSERT_TRUE(book->submit(spec_of("a"), JobState::queued, "t").has_value());
  store::Database::open(path, true)->run("ALTER TABLE history RENAME TO elsewhere");
  EXPECT_FALSE(book->submit(spec_of("b"), JobState::queued, "t").has_value());
  store::Database::open(path, true)->run("ALTER TABLE elsewhere RENAME TO history");
  ASSERT_TRUE(book->submit(spec_of("c"), JobState::queued, "t").has_value());
  const auto jobs = book->list();
  ASSERT_TRUE(jobs.has_value());
  ASSERT_EQ(jobs->size(), 2U) << "the job whose history could not be written is not there either";
  EXPECT_EQ(jobs->front().spec.name, "c");
}

}  // namespace
}  // namespace troupe::service
