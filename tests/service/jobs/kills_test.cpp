#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "service/jobs/job_store.hpp"
#include "tests/folder.hpp"
#include "tests/nodes/process.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

std::set<std::int64_t> accepted_ids(const std::string& said) {
  std::set<std::int64_t> ids;
  constexpr std::string_view kSign = "submitted ";
  for (auto at = said.find(kSign); at != std::string::npos; at = said.find(kSign, at + 1)) {
    const auto end = said.find(';', at);
    if (end != std::string::npos) ids.insert(std::stoll(said.substr(at + kSign.size(), end - at - kSign.size())));
  }
  return ids;
}

/// A service with three new jobs is killed a hundred times, each time after a random while.
TEST(KillsTest, AServiceThatIsKilledAHundredTimesLosesNoJobAndRunsNoneTwice) {
  constexpr int kKills = 100;
  const tests::Folder folder;
  std::mt19937 random(20260102);
  std::set<std::int64_t> accepted;
  // Kills come until well after a service takes jobs, which is later under a sanitizer.
  const auto begin = std::chrono::steady_clock::now();
  {
    nodes::Process first({TROUPE_JOB_HOST, "serve", folder.path(), "2", "submit=3"});
    ASSERT_TRUE(first.says("submitted ")) << first.err();
    first.kill();
    accepted.merge(accepted_ids(first.err()));
  }
  const auto usual = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  std::uniform_int_distribution<int> after_ms(0, static_cast<int>(usual.count()) + 60);
  for (int kill = 0; kill < kKills; ++kill) {
    nodes::Process host({TROUPE_JOB_HOST, "serve", folder.path(), "2", "submit=3"});
    tests::let_pass(std::chrono::milliseconds(after_ms(random)));
    host.kill();
    accepted.merge(accepted_ids(host.err()));
  }
  nodes::Process last({TROUPE_JOB_HOST, "serve", folder.path(), "2", "drain"});
  ASSERT_EQ(last.wait(), 0) << last.err();

  auto store = JobStore::open(folder.file(".service/jobs.sqlite"));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  const auto jobs = store->list();
  ASSERT_TRUE(jobs.has_value());
  std::map<std::int64_t, int> runs;
  std::istringstream text(folder.read("runs"));
  for (std::int64_t id = 0; text >> id;) ++runs[id];
  std::size_t again = 0;
  for (const auto& job : *jobs) {
    EXPECT_EQ(job.state, JobState::done) << job.id << " " << name(job.state) << ": " << job.error;
    EXPECT_EQ(runs[job.id], 1) << "job " << job.id;
    accepted.erase(job.id);
    again += job.attempt > 1 ? 1 : 0;
  }
  EXPECT_TRUE(accepted.empty()) << accepted.size() << " accepted jobs are lost";
  EXPECT_EQ(runs.size(), jobs->size()) << "a job ran of which the store knows nothing";
  EXPECT_GT(jobs->size(), 20U) << "the services were killed before they did anything";
  RecordProperty("jobs", static_cast<int>(jobs->size()));
  RecordProperty("fenced", static_cast<int>(again));
}

}  // namespace
}  // namespace troupe::service
