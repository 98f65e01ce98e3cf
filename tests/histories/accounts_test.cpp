// Tests of the oracle itself: it accepts a correct run and reports every violation.
#include "tests/histories/accounts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/histories/reports.hpp"

namespace troupe::histories {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr RunFacts kOnDemand{.epoch_size = 10};
constexpr RunFacts kInStep{.epoch_size = 8, .in_step = true};

Granted granted(std::uint32_t worker, std::uint64_t lease, std::uint32_t epoch, std::int64_t first,
                std::int64_t count = 4) {
  return {worker, {lease, epoch, first, count}};
}
void all_train(Segment& segment, std::uint32_t worker, std::uint64_t from, std::uint64_t steps) {
  for (auto step = from; step < from + steps; ++step) segment.entries.emplace_back(Trained{worker, step});
}
Segment whole() {
  Segment segment{.closed = true};
  segment.entries = {granted(0, 0, 0, 0), granted(1, 1, 0, 4), granted(1, 2, 0, 8), Begun{0, 0}, Begun{1, 0}};
  all_train(segment, 0, 0, 1);
  all_train(segment, 1, 0, 2);
  return segment;
}

TEST(Accounts, EpochWithEverySampleOnceIsCorrect) {
  const auto accounts = account(kOnDemand, {whole()});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.steps, 3U);
  EXPECT_EQ(accounts.steps_most, 3U);
  EXPECT_EQ(accounts.samples, 12U);  // the last batch wraps around to the beginning
  EXPECT_EQ(accounts.epochs, 1U);
}

TEST(Accounts, LeaseWithoutStepIsReported) {
  auto segment = whole();
  segment.entries.pop_back();
  EXPECT_THAT(account(kOnDemand, {segment}).wrong, ElementsAre(HasSubstr("worker 1 has no step 1")));
  // The record may be missing if the writer was killed. The step may have been passed over, if the strategy does so.
  segment.closed = false;
  EXPECT_THAT(account(kOnDemand, {segment}).wrong, IsEmpty());
  segment.closed = true;
  const auto passed = account({.epoch_size = 10, .passes_over = true}, {segment});
  EXPECT_THAT(passed.wrong, IsEmpty());
  EXPECT_EQ(passed.passed_over, 4U);
  EXPECT_EQ(passed.steps, 2U);
}

TEST(Accounts, SampleGrantedTwiceIsReported) {
  auto segment = whole();
  segment.entries.insert(segment.entries.begin() + 1, granted(0, 7, 0, 2));
  all_train(segment, 0, 1, 1);
  EXPECT_THAT(account(kOnDemand, {segment}).wrong,
              testing::Contains(HasSubstr("lease 7 of epoch 0 begins at sample 2, which is somebody's already")));
}

TEST(Accounts, SampleNeverGrantedIsReported) {
  auto segment = whole();
  segment.entries.erase(segment.entries.begin() + 1);
  segment.entries.erase(segment.entries.end() - 1);
  segment.entries.emplace_back(granted(0, 3, 1, 0));
  all_train(segment, 0, 1, 1);
  EXPECT_THAT(account(kOnDemand, {segment}).wrong, ElementsAre(HasSubstr("4 samples of epoch 0 were never granted")));
}

TEST(Accounts, LostWorkersLeasesMayBeGrantedAgain) {
  Segment segment{.closed = true};
  segment.entries = {granted(0, 0, 0, 0), granted(1, 1, 0, 4), Begun{0, 0}, Begun{1, 0}};
  all_train(segment, 1, 0, 1);
  segment.entries.emplace_back(Lost{1, true, {{1, 0, 4, 4}}});
  segment.entries.emplace_back(granted(0, 2, 0, 4));
  segment.entries.emplace_back(granted(0, 3, 0, 8));
  all_train(segment, 0, 0, 3);
  const auto accounts = account(kOnDemand, {segment});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.steps, 3U);
  EXPECT_EQ(accounts.steps_most, 4U);
  // Without the record of the loss, two workers have the same samples.
  std::erase_if(segment.entries, [](const Entry& entry) { return std::holds_alternative<Lost>(entry); });
  EXPECT_THAT(account(kOnDemand, {segment}).wrong, testing::Contains(HasSubstr("which is somebody's already")));
}

TEST(Accounts, LostWorkersLeasesMayBePassedOver) {
  Segment segment{.closed = true};
  segment.entries = {granted(0, 0, 0, 0, 2), granted(1, 1, 0, 2, 2), granted(0, 2, 0, 4, 2), Begun{0, 0}};
  all_train(segment, 0, 0, 3);
  segment.entries.emplace_back(Lost{1, false, {{1, 0, 2, 2}, {3, 0, 6, 2}}});  // lease 3 had not been granted yet
  segment.entries.emplace_back(granted(0, 4, 1, 0, 2));
  const auto accounts = account(kInStep, {segment});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.passed_over, 4U);
  EXPECT_EQ(accounts.steps, 3U);
}

// Two lives of one worker: late records of the first do not count for the second.
TEST(Accounts, LateRecordsOfALostWorkerAreNotItsReplacements) {
  Segment segment{.closed = true};
  segment.entries = {
      granted(1, 0, 0, 0), Begun{1, 0}, Trained{1, 0},       granted(1, 1, 0, 4), Lost{1, true, {{1, 0, 4, 4}}},
      Trained{1, 1},       Begun{1, 9}, granted(1, 2, 0, 4), Trained{1, 9},       granted(1, 3, 0, 8),
      Trained{1, 10}};
  const auto accounts = account(kOnDemand, {segment});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.steps, 3U);
}

TEST(Accounts, ResumeUndoesRecordsAfterItsCheckpoint) {
  auto first = whole();
  first.closed = false;
  Segment second{.number = 2,
                 .start = Start{.epoch = 0, .next_lease = 1, .free = {{4, 6}}, .steps = 1, .resumed = true}};
  second.closed = true;
  second.entries = {Begun{0, 1}, granted(0, 1, 0, 4), granted(0, 2, 0, 8)};
  all_train(second, 0, 1, 2);
  const auto accounts = account(kOnDemand, {first, second});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.steps, 3U);
  // A start state whose free samples contradict the leases granted before it.
  second.start->free = {{0, 4}, {8, 2}};
  EXPECT_THAT(account(kOnDemand, {first, second}).wrong,
              testing::Contains(
                  HasSubstr("begins epoch 0 with [0, 4) [8, 10) samples to be granted, and this leaves [4, 10)")));
}

TEST(Accounts, AResumeUndoesWholeSegmentsBehindItsCheckpoint) {
  auto first = whole();
  // The next epoch, in a segment of its own; then a kill, and a resume from a checkpoint in the first epoch.
  Segment undone{.number = 2, .start = Start{.epoch = 1, .next_lease = 3, .free = {{0, 10}}, .steps = 3}};
  undone.entries = {granted(0, 3, 1, 0)};
  all_train(undone, 0, 1, 1);
  Segment last{.number = 3,
               .start = Start{.epoch = 0, .next_lease = 1, .free = {{4, 6}}, .steps = 1, .resumed = true},
               .closed = true};
  last.entries = {Begun{0, 1}, granted(0, 1, 0, 4), granted(0, 2, 0, 8)};
  all_train(last, 0, 1, 2);
  const auto accounts = account(kOnDemand, {first, undone, last});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.steps, 3U);
  EXPECT_EQ(accounts.epochs, 1U);
  // The same, if a bound on the journal has removed the first segment.
  const auto bounded = account(kOnDemand, {undone, last});
  EXPECT_THAT(bounded.wrong, IsEmpty());
  EXPECT_EQ(bounded.steps, 3U);
}

TEST(Accounts, JournalWithoutItsOldSegmentsIsAccountedFor) {
  Segment middle{.number = 4,
                 .start = Start{.epoch = 3, .next_lease = 20, .free = {{4, 6}}, .steps = 20, .samples = 80}};
  middle.closed = true;
  middle.entries = {Trained{0, 11}, granted(0, 20, 3, 4), granted(0, 21, 3, 8), Trained{0, 12}};
  const auto accounts = account(kOnDemand, {middle});
  EXPECT_THAT(accounts.wrong, IsEmpty());
  EXPECT_EQ(accounts.steps, 22U);
  EXPECT_EQ(accounts.samples, 88U);
  EXPECT_EQ(accounts.epochs, 4U);
  EXPECT_THAT(account(kOnDemand, {whole(), middle}).wrong, ElementsAre("journal-0004 follows journal-0001"));
  EXPECT_THAT(account(kOnDemand, {}).wrong, ElementsAre("there is no journal"));
}

Reported session(double from, std::vector<std::uint32_t> epochs) {
  Reported reported{.from = from};
  for (const auto epoch : epochs)
    reported.epochs.push_back(
        {.epoch = epoch, .steps = 60 * epoch, .train_loss = 0.5, .test_loss = 0.6, .images_per_s = 9});
  return reported;
}

TEST(Reports, EpochMissingOrReportedTwiceIsFound) {
  EXPECT_THAT(check_reports({session(0, {1, 2})}, 2), IsEmpty());
  EXPECT_THAT(check_reports({session(0, {1, 2}), session(1.5, {2, 3})}, 3), IsEmpty());  // the resume undid epoch 2
  EXPECT_THAT(check_reports({session(0, {1, 2}), session(2, {2, 3})}, 3),
              ElementsAre(HasSubstr("epoch 2: it was reported before")));
  EXPECT_THAT(check_reports({session(0, {1}), session(1.5, {3})}, 3),
              ElementsAre("metrics.jsonl: epoch 2 is not reported"));
  EXPECT_THAT(check_reports({session(0, {1, 2})}, 1), ElementsAre(HasSubstr("epoch 2 is reported, and 1 are done")));
}

TEST(Reports, MissingOrZeroTrainingLossIsReported) {
  for (const auto loss : {std::optional<double>{}, std::optional(0.0), std::optional(-1.0)}) {
    auto zero = session(0, {1});
    zero.epochs[0].train_loss = loss;
    EXPECT_THAT(check_reports({zero}, 1), ElementsAre(HasSubstr("training loss")));
  }
}

}  // namespace
}  // namespace troupe::histories
