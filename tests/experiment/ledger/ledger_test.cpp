#include "experiment/ledger/ledger.hpp"

#include <gtest/gtest.h>

#include "experiment/summary.hpp"
#include "tests/folder.hpp"

namespace troupe::experiment {
namespace {

/// 100 samples a second while it computes.
WorkerProgress worker(std::uint64_t samples, double rate = 100) {
  return {.samples = samples, .compute_s = static_cast<double>(samples) / rate};
}

data::LeaseAccounts accounts(std::int64_t done) {
  return {.epoch = 1, .size = 1000, .done = done, .leased = 50, .free = 950 - done, .run_done = 1000 + done};
}

TEST(Ledger, GoodputIsWhatCameOfWhatTheMembersCouldHaveDone) {
  LedgerKeeper keeper(2, {}, {});
  keeper.joined(0, 0);
  keeper.joined(1, 0);
  // 10 s: worker 0 could have computed 1000 samples, worker 1 at half its rate 500; of them 1200 are done.
  auto report =
      keeper.report({.size = 2000, .done = 1200, .free = 800, .run_done = 1200}, {worker(800), worker(400, 50)}, 10);
  EXPECT_EQ(report.useful, 1200U);
  EXPECT_EQ(report.computed, 1200U);
  EXPECT_DOUBLE_EQ(report.possible, 1500);
  EXPECT_DOUBLE_EQ(goodput(report), 0.8);
  EXPECT_EQ(report.wall_s, 10);
  // A worker that is gone could have done nothing more.
  keeper.left(1, 10);
  report = keeper.report({.size = 2000, .done = 1500, .run_done = 1500}, {worker(1100), worker(400, 50)}, 15);
  EXPECT_DOUBLE_EQ(report.possible, 1500 + 500);
  keeper.joined(1, 20);
  report = keeper.report({}, {worker(1100), worker(400, 50)}, 22);
  EXPECT_DOUBLE_EQ(report.possible, 2200 + 500 + 100);
}

TEST(Ledger, AWorkerThatHasComputedNothingCountsAsTheOthersDo) {
  EXPECT_DOUBLE_EQ(possible_samples({worker(100), worker(0), worker(100, 300)}, {1, 2, 3}), 100 + 2 * 200 + 900);
  EXPECT_EQ(possible_samples({worker(0)}, {5}), 0);
  EXPECT_EQ(goodput({}), kUnknown);
}

TEST(Ledger, LostSamplesReturnOrAreOmitted) {
  LedgerKeeper keeper(1, {}, {});
  keeper.lost(30, true);
  keeper.lost(12, false);
  const auto report = keeper.report(accounts(0), {worker(0)}, 1);
  EXPECT_EQ(report.lost, 42U);
  EXPECT_EQ(report.returned, 30U);
}

TEST(Ledger, AResumeCarriesOnAndCountsWhatItUndid) {
  LedgerReport last{.useful = 1400, .computed = 1500, .lost = 7, .returned = 5, .rolled_back = 10, .possible = 2000};
  last.wall_s = 20;
  // The checkpoint has 1250 of the 1400: 150 are to be done again.
  LedgerKeeper keeper(1, {.before = last}, accounts(250));
  keeper.joined(0, 0);
  const auto report = keeper.report(accounts(350), {worker(100)}, 2);
  EXPECT_EQ(report.rolled_back, 160U);
  EXPECT_EQ(report.useful, 1350U);
  EXPECT_EQ(report.computed, 1600U);
  EXPECT_EQ(report.lost, 7U);
  EXPECT_EQ(report.returned, 5U);
  EXPECT_DOUBLE_EQ(report.possible, 2000 + 200);
  EXPECT_EQ(report.wall_s, 22);
}

TEST(Ledger, OfAnOlderProgramsRunTheCheckpointSaysWhatItCost) {
  LedgerKeeper keeper(2, {.before = {}, .computed = 1250, .wall_s = 10, .workers = {worker(500), worker(750)}},
                      accounts(250));
  const auto report = keeper.report(accounts(250), {worker(0), worker(0)}, 0);
  EXPECT_EQ(report.rolled_back, 0U);
  EXPECT_EQ(report.computed, 1250U);
  EXPECT_DOUBLE_EQ(report.possible, 2000);
}

TEST(Ledger, TheLastWholeLineOfMetricsIsRead) {
  const tests::Folder folder;
  const auto path = folder.file("metrics.jsonl");
  EXPECT_FALSE(last_ledger(path));
  LedgerReport report{.epoch = 3, .size = 9, .done = 4, .useful = 31, .computed = 40, .lost = 2, .returned = 1};
  report.passed = 3;
  report.rolled_back = 5;
  report.possible = 62.5;
  report.wall_s = 7.25;
  auto older = report;
  older.useful = 1;
  const auto whole = to_json(older, 1) + "\n" + to_json(Note{}, 2) + "\n" + to_json(report, 3) + "\n";
  folder.write("metrics.jsonl", whole + R"({"kind":"worker","t":4})" + "\n" + to_json(older, 5).substr(0, 60));
  const auto found = last_ledger(path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->useful, 31U);
  EXPECT_EQ(found->computed, 40U);
  EXPECT_EQ(found->passed, 3U);
  EXPECT_EQ(found->rolled_back, 5U);
  EXPECT_EQ(found->possible, 62.5);
  EXPECT_EQ(found->wall_s, 7.25);
  // Farther from the end than a block, and so that it begins across two.
  const auto behind = R"({"kind":"worker","t":4})" + std::string("\n");
  for (const std::size_t bytes : {(1U << 16) - behind.size() + 5, std::size_t{200'000}}) {
    const auto line = to_json(report, 3) + "\n";
    folder.write("metrics.jsonl",
                 to_json(Note{}, 2) + "\n" + line + std::string(bytes - line.size(), 'x') + "\n" + behind);
    ASSERT_TRUE(last_ledger(path)) << bytes;
    EXPECT_EQ(last_ledger(path)->useful, 31U);
  }
  folder.write("metrics.jsonl", to_json(Note{}, 2) + "\n" + R"({"kind":"ledger","t":1,"useful":"many"})" + "\n");
  EXPECT_FALSE(last_ledger(path)) << "a foreign line";
}

TEST(Ledger, TheLastLineOfMetricsTellsTheEpochsDone) {
  const tests::Folder folder;
  const auto path = folder.file("metrics.jsonl");
  EXPECT_FALSE(last_position(path));
  const LedgerReport report{.epoch = 3, .size = 90, .done = 20, .given_up = 12, .leased = 7, .omitted = 10};
  folder.write("metrics.jsonl", to_json(Note{}, 1) + "\n" + to_json(report, 2) + "\n");
  EXPECT_EQ(last_position(path), 3.4);
  folder.write("metrics.jsonl", to_json(Note{}, 1) + "\n" + R"({"kind":"ledger","t":1,"epoch":3})" + "\n");
  EXPECT_FALSE(last_position(path));
}

}  // namespace
}  // namespace troupe::experiment
