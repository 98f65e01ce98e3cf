#include "tests/sim/replay/replayed.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "experiment/directory/run_directory.hpp"
#include "experiment/directory/run_records.hpp"
#include "nn/hash.hpp"

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

void change_plan(const SmallRun& run, const std::function<void(nlohmann::json&)>& change) {
  const auto segment = experiment::RunDirectory::open(run.run_directory().string())->journals()->back();
  auto plan = nlohmann::json::parse(std::ifstream(segment.plan));
  change(plan);
  const auto text = plan.dump();
  std::ofstream(segment.plan) << text << '\n';
  const auto hash = nn::hash64(std::as_bytes(std::span(text)));
  auto records = run.journal();
  for (auto& record : records)
    if (experiment::decode_plan(record)) record = experiment::encode(experiment::PlanRecord{hash});
  std::filesystem::remove(segment.path);
  auto writer = core::JournalWriter::create(segment.path);
  for (const auto& record : records) ASSERT_TRUE(writer->append(record.kind, record.payload));
  ASSERT_TRUE(writer->flush());
}

BoundedRun train_bounded(const std::vector<std::string>& options) {
  BoundedRun bounded;
  for (const int step_ms : {2, 8, 32, 128}) {
    auto lasting = options;
    lasting.push_back("cluster.synthetic_step_ms=" + std::to_string(step_ms));
    bounded.run = std::make_unique<SmallRun>(lasting);
    bounded.end = bounded.run->train();
    if (bounded.end.failed || !std::filesystem::exists(bounded.run->run_directory() / "journal-0001.bin"))
      return bounded;
  }
  ADD_FAILURE() << "the journal keeps its oldest segment";
  return bounded;
}

}  // namespace troupe::tests
