#include "tests/sim/replay/replayed.hpp"

#include <gtest/gtest.h>

namespace troupe::tests {

core::Result<replay::ReplayReport> replayed(const SmallRun& run, const std::vector<std::string>& changes) {
  return replay::replay_run({run.run_directory().string(), changes}, backend());
}

void expect_whole(const replay::ReplayReport& report) {
  for (const auto& segment : report.segments) {
    EXPECT_TRUE(segment.complete) << segment.path;
    EXPECT_EQ(segment.replayed, segment.events) << segment.path;
    EXPECT_GT(segment.hashes, 0U) << segment.path;
  }
}

void expect_whole(const replay::ReplayReport& report, const experiment::RunEnd& end) {
  expect_whole(report);
  EXPECT_EQ(report.summary.center_hash, end.summary.center_hash);
  EXPECT_EQ(report.summary.steps, end.summary.steps);
}

}  // namespace troupe::tests
