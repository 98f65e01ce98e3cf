/// Which worker waited, for how long and why; with a manual clock.
#include <gtest/gtest.h>

#include "strategies/host/worker_host.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

using namespace std::chrono_literals;

/// At every StepDone an exchange with both shards, which the worker waits for if `overlap` is false.
struct TimeStage {
  explicit TimeStage(bool overlap)
      : ports(2),
        host(std::make_unique<ScriptedWorker>(
                 [overlap](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
                   if (std::holds_alternative<Started>(event)) then.compute();
                   if (const auto* done = std::get_if<StepDone>(&event)) {
                     then.apply(fill(kAcc, 0));
                     then.push_pull(done->step, overlap ? staged(0) : kParams);
                     if (overlap) then.compute();
                   }
                   if (std::holds_alternative<ExchangeDone>(event) && !overlap) then.compute();
                 }),
             {ports, &ports}, {}, &events) {
    host.start(0);
  }
  void pass(Duration time) { ports.clock.advance(time); }
  NotingPorts ports;
  EventNames events;
  WorkerHost host;
};

TEST(WorkerHostTime, StandingStillIsSplitIntoWaitingForOthersAndExchanging) {
  TimeStage s(false);
  s.pass(100ms);  // computing is neither
  s.host.step_done(0, {});
  s.pass(3ms);
  s.host.replied({.shard = 0, .exchange = 0, .held = 2ms});
  s.pass(7ms);
  s.host.replied({.shard = 1, .exchange = 0, .held = 4ms});
  EXPECT_EQ(s.host.totals().wait, 4ms) << "shards wait side by side: the longest counts";
  EXPECT_EQ(s.host.totals().exchange, 6ms);
  const auto& record = s.events.records.at(0);
  EXPECT_EQ(record.blocked, 10ms);
  EXPECT_EQ(record.wait, 4ms);
  EXPECT_EQ(record.transfer, 10ms);
  EXPECT_EQ(record.step, 1U);
  EXPECT_EQ(record.delay, 0U);
}

TEST(WorkerHostTime, OwnKernelsAreWork) {
  TimeStage s(false);
  s.ports.kernel_takes = 5ms;
  s.host.step_done(0, {});
  s.pass(1ms);
  for (const ShardId shard : {0U, 1U}) s.host.replied({.shard = shard, .exchange = 0});
  EXPECT_EQ(s.host.totals().local, 5ms);
  EXPECT_EQ(s.host.totals().exchange, 1ms);
  EXPECT_EQ(s.host.totals().wait, 0ms);
}

TEST(WorkerHostTime, WaitIsNeverMoreThanTheTimeStoodStill) {
  TimeStage s(false);
  s.host.step_done(0, {});
  s.pass(2ms);
  for (const ShardId shard : {0U, 1U}) s.host.replied({.shard = shard, .exchange = 0, .held = 1h});
  EXPECT_EQ(s.host.totals().wait, 2ms);
  EXPECT_EQ(s.host.totals().exchange, 0ms);
}

TEST(WorkerHostTime, AnAnswerDuringAStepKeepsItsTimeAndBlocksNoWorker) {
  TimeStage s(true);
  s.host.step_done(0, {});
  s.pass(2ms);
  s.host.replied({.shard = 0, .exchange = 0, .held = 1ms});
  s.host.replied({.shard = 1, .exchange = 0, .held = 1ms});
  s.pass(98ms);
  s.ports.kernel_takes = 5ms;
  s.host.step_done(0, {});
  const auto& record = s.events.records.at(0);
  EXPECT_EQ(record.transfer, 2ms) << "not until the step's end";
  EXPECT_EQ(record.blocked, 0ms);
  EXPECT_EQ(record.wait, 0ms);
  EXPECT_EQ(record.delay, 0U) << "sent after step 1 was completed, applied before step 2 is";
  EXPECT_EQ(s.host.totals().wait + s.host.totals().exchange, 0ms);
}

TEST(WorkerHostTime, DelayCountsTheStepsBetweenSendingAndApplying) {
  TimeStage s(true);
  s.host.step_done(0, {});
  s.host.replied({.shard = 0, .exchange = 0, .staleness = 3});
  // The second exchange would need the slot that the first one still uses: two steps without a free slot.
  EXPECT_THROW(s.host.step_done(0, {}), std::logic_error);

  NotingPorts ports;
  EventNames events;
  WorkerHost host(
      std::make_unique<ScriptedWorker>([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        const auto* done = std::get_if<StepDone>(&event);
        if (done && done->step == 0) then.push_pull(0, staged(0));
        if (done || std::holds_alternative<Started>(event)) then.compute();
      }),
      {ports, &ports}, {}, &events);
  host.start(0);
  for (int step = 0; step < 4; ++step) host.step_done(0, {});
  host.replied({.shard = 0, .exchange = 0, .staleness = 3});
  host.step_done(0, {});
  EXPECT_EQ(events.records.at(0).delay, 3U);
  EXPECT_EQ(host.totals().staleness_max, 3U);
  EXPECT_EQ(host.totals().staleness_sum, 3U);
  EXPECT_EQ(host.totals().updates, 1U);
}

TEST(WorkerHostTime, ACollectiveThatWaitedForItsLastMemberIsWait) {
  NotingPorts ports;
  EventNames events;
  WorkerHost host(
      std::make_unique<ScriptedWorker>([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        if (std::holds_alternative<StepDone>(event)) return then.reduce(1, kGrads, ReduceOp::mean);
        then.compute();
      }),
      {ports, nullptr, &ports}, {}, &events);
  host.start(0);
  host.step_done(0, {});
  ports.clock.advance(10ms);
  host.reduced(1, 8ms, 3);
  EXPECT_EQ(host.totals().wait, 8ms);
  EXPECT_EQ(host.totals().waits.by_cause(), (std::map<Cause, Duration>{{{Cause::Kind::worker, 3}, 8ms}}));
  EXPECT_EQ(host.totals().exchange, 2ms);
  EXPECT_EQ(host.totals().exchanges, 1U);
  EXPECT_EQ(events.records.at(0).updates, 0U);
}

TEST(WorkerHostTime, AWaitIsAttributedToTheWorkersThatTheServerServedAndHeldFor) {
  NotingPorts ports(2);
  WorkerHost host(
      std::make_unique<ScriptedWorker>([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        if (std::holds_alternative<StepDone>(event)) return then.push_pull(1, kParams);
        if (!std::holds_alternative<Replied>(event)) then.compute();
      }),
      {ports, &ports}, {});
  using enum Cause::Kind;
  host.start(0);
  host.step_done(0, {});
  ports.clock.advance(10ms);
  host.replied({.shard = 0, .exchange = 1, .held = 2ms, .last = 4});
  host.replied({.shard = 1, .exchange = 1, .queued = 3ms, .held = 5ms, .last = 2});  // the slowest shard counts
  EXPECT_EQ(host.totals().wait, 8ms);
  EXPECT_EQ(host.totals().waits.by_cause(), (std::map<Cause, Duration>{{{worker, 2}, 5ms}, {{server, 1}, 3ms}}));

  host.step_done(0, {});
  ports.clock.advance(6ms);  // the wait is shorter than the request: only its last part counts
  host.replied({.shard = 0, .exchange = 1});
  host.replied({.shard = 1, .exchange = 1, .queued = 3ms, .held = 5ms});  // no request released it: the shard's time
  EXPECT_EQ(host.totals().wait, 14ms);
  EXPECT_EQ(host.totals().waits.by_cause(), (std::map<Cause, Duration>{{{worker, 2}, 5ms}, {{server, 1}, 9ms}}));
}

TEST(WorkerHostTime, WaitsAfterEachOtherAddUpWaitsAtTheSameTimeDoNot) {
  NotingPorts ports;
  WorkerHost host(
      std::make_unique<ScriptedWorker>([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        if (std::holds_alternative<StepDone>(event)) {
          then.push(1, kGrads);
          then.push(2, kAcc);
        }
        const auto* done = std::get_if<ExchangeDone>(&event);
        if (done && done->exchange == 2) then.pull(3, kParams);
        if (std::holds_alternative<Started>(event) || (done && done->exchange == 3)) then.compute();
      }),
      {ports, &ports}, {});
  host.start(0);
  host.step_done(0, {});
  ports.clock.advance(10ms);
  host.replied({.shard = 0, .exchange = 1, .held = 4ms, .last = 1});
  host.replied({.shard = 0, .exchange = 2, .held = 6ms, .last = 2});  // at the same time
  ports.clock.advance(10ms);
  host.replied({.shard = 0, .exchange = 3, .held = 7ms, .last = 1});  // afterwards
  EXPECT_EQ(host.totals().wait, 13ms);
  EXPECT_EQ(host.totals().exchange, 7ms);
  using enum Cause::Kind;
  EXPECT_EQ(host.totals().waits.by_cause(), (std::map<Cause, Duration>{{{worker, 1}, 7ms}, {{worker, 2}, 6ms}}));
}

TEST(WorkerHostTime, APullIsNoUpdateAndHasNoStaleness) {
  NotingPorts ports;
  WorkerHost host(
      std::make_unique<ScriptedWorker>([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        const auto* done = std::get_if<StepDone>(&event);
        if (done && done->step == 0) return then.pull(1, kParams);
        if (done) return then.push(2, kGrads);
        if (!std::holds_alternative<Replied>(event)) then.compute();
      }),
      {ports, &ports}, {});
  host.start(0);
  host.step_done(0, {});
  host.replied({.shard = 0, .exchange = 1, .staleness = 9});
  EXPECT_EQ(host.totals().updates, 0U);
  host.step_done(0, {});
  host.replied({.shard = 0, .exchange = 2, .staleness = 5});
  EXPECT_EQ(host.totals().updates, 1U);
  EXPECT_EQ(host.totals().staleness_max, 5U);
  EXPECT_EQ(host.totals().staleness.counts()[4], 1U);  // 4 ≤ 5 < 6
}

TEST(WorkerTotals, TotalsOfAWorkersSessionsAddUp) {
  const Cause server{Cause::Kind::server, 1}, worker{Cause::Kind::worker, 2};
  WorkerTotals one{.exchanges = 2, .dropped = 1, .skipped = 3, .passed = 4, .staleness_sum = 9, .staleness_max = 7};
  one.updates = 2;
  one.exchange = 5ms;
  one.wait = 4ms;
  one.local = 1ms;
  one.staleness.add(7);
  one.waits.add(4ms, {.server = 1, .held = 3ms, .holder = worker});
  WorkerTotals other = one;
  other.staleness_max = 6;
  other.add(one);
  EXPECT_EQ(other.exchanges, 4U);
  EXPECT_EQ(other.dropped, 2U);
  EXPECT_EQ(other.skipped, 6U);
  EXPECT_EQ(other.passed, 8U);
  EXPECT_EQ(other.staleness_sum, 18U);
  EXPECT_EQ(other.staleness_max, 7U);
  EXPECT_EQ(other.updates, 4U);
  EXPECT_EQ(other.exchange, 10ms);
  EXPECT_EQ(other.wait, 8ms);
  EXPECT_EQ(other.local, 2ms);
  EXPECT_EQ(other.staleness.counts()[5], 2U);  // 6 ≤ 7 < 8
  EXPECT_EQ(other.waits.by_cause(), (std::map<Cause, Duration>{{worker, 6ms}, {server, 2ms}}));
}

TEST(StalenessHistogram, BinsAreHalfOpenAndTheLastIsOpen) {
  StalenessHistogram histogram;
  for (const Version staleness : {0, 1, 3, 4, 5, 6, 1023, 1024, 1'000'000}) histogram.add(staleness);
  const auto& counts = histogram.counts();
  EXPECT_EQ((std::vector<std::uint64_t>(counts.begin(), counts.begin() + 6)),
            (std::vector<std::uint64_t>{1, 1, 0, 1, 2, 1}));
  EXPECT_EQ(counts[19], 1U);
  EXPECT_EQ(counts[20], 2U);
}

}  // namespace
}  // namespace troupe::strategies
