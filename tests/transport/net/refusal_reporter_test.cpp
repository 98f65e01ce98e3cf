#include "transport/net/refusal_reporter.hpp"

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

using namespace std::chrono_literals;

struct Reported {
  core::ManualClock clock;
  std::vector<RefusedConnection> all;
  RefusalReporter reporter{[this](const RefusedConnection& refusal) { all.push_back(refusal); }, clock};
};

TEST(RefusalReporter, ManyInOneSecondAreCountedAndReportedWithTheNext) {
  Reported log;
  for (std::size_t i = 0; i < RefusalReporter::kPerSecond + 37; ++i) log.reporter.report("192.0.2.7:1", "why");
  EXPECT_EQ(log.all.size(), RefusalReporter::kPerSecond);
  log.clock.advance(999ms);
  log.reporter.report("192.0.2.7:1", "why");
  EXPECT_EQ(log.all.size(), RefusalReporter::kPerSecond);
  log.clock.advance(1ms);
  log.reporter.report("192.0.2.7:2", "why");
  log.reporter.report("192.0.2.7:3", "why");
  ASSERT_EQ(log.all.size(), RefusalReporter::kPerSecond + 2);
  EXPECT_EQ(log.all[RefusalReporter::kPerSecond].why, "why (and 38 more before, who are not listed)");
  EXPECT_EQ(log.all.back().from, "192.0.2.7:3");
  EXPECT_EQ(log.all.back().why, "why");
}

TEST(RefusalReporter, RestIsReportedWhenNoMoreCome) {
  const core::SteadyClock clock;
  std::vector<RefusedConnection> all;
  std::mutex mutex;
  std::condition_variable told;
  const auto hook = [&](const RefusedConnection& refusal) {
    const std::lock_guard lock(mutex);
    all.push_back(refusal);
    told.notify_one();
  };
  RefusalReporter reporter(hook, clock);
  for (int flood = 1; flood <= 2; ++flood) {
    std::size_t listed = 0;
    for (std::size_t i = 0; i < RefusalReporter::kPerSecond + 37; ++i) reporter.report("192.0.2.7:1", "why");
    std::unique_lock lock(mutex);
    // On a busy machine the flood may take a second; then more of its refusals are listed.
    EXPECT_TRUE(told.wait_for(lock, 60s, [&] { return !all.empty() && all.back().from.ends_with(" more"); }));
    for (const auto& refusal : all) listed += refusal.from == "192.0.2.7:1";
    std::size_t rest = 0;
    for (const auto& refusal : all) {
      if (refusal.from.ends_with(" more")) rest += std::stoul(refusal.from);
      const auto before = refusal.why.find("(and ");
      if (before != std::string::npos) rest += std::stoul(refusal.why.substr(before + 5));
    }
    EXPECT_EQ(listed + rest, RefusalReporter::kPerSecond + 37);
    all.clear();
  }
}

TEST(RefusalReporter, AnUnknownPeersTextIsPrintableAndShort) {
  Reported log;
  log.reporter.report("192.0.2.7:1", "a\n\x1b[31mb" + std::string(8000, 'x'));
  EXPECT_TRUE(log.all.at(0).why.starts_with("a??[31mb"));
  EXPECT_LE(log.all.at(0).why.size(), 256u);
}

TEST(RefusalReporter, AThrowingHookIsReportedAndReportingContinues) {
  const core::ManualClock clock;
  RefusalReporter reporter([](const RefusedConnection&) { throw std::runtime_error("the disk is full"); }, clock);
  reporter.report("192.0.2.7:1", "why");
  RefusalReporter({}, clock).report("192.0.2.7:1", "why");
}

}  // namespace
}  // namespace troupe::transport
