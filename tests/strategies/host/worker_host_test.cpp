#include "strategies/host/worker_host.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

using Names = std::vector<std::string>;

/// A host with noting ports and a rule that computes when it may and otherwise follows `script`.
struct Stage {
  explicit Stage(ScriptedWorker::Script script, ShardId shards = 1, WorkerHostOptions options = {})
      : ports(shards),
        host(std::make_unique<ScriptedWorker>(std::move(script)), {ports, &ports, &ports, &ports}, std::move(options),
             &events) {}
  NotingPorts ports;
  EventNames events;
  WorkerHost host;
};

ScriptedWorker::Script always_compute(ScriptedWorker::Script more = {}) {
  return [more](const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
    if (more) more(event, context, then);
    if (std::holds_alternative<Started>(event) || std::holds_alternative<StepDone>(event)) then.compute();
  };
}

/// After step 0 an exchange 7 of all shards is pending with a staged copy while the next step is computed.
ScriptedWorker::Script overlapping() {
  return always_compute([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    const auto* done = std::get_if<StepDone>(&event);
    if (done && done->step == 0) then.push_pull(7, staged(0));
  });
}

TEST(WorkerHost, ArrivalsDuringAStepReachTheRuleInOrderBeforeStepDone) {
  Stage s(overlapping(), 2);
  s.host.start(0);
  s.host.step_done(0, {});
  s.events.names.clear();
  s.host.replied({.shard = 1, .exchange = 7, .version = 1});
  s.host.deadline_passed(3);
  s.host.replied({.shard = 0, .exchange = 7, .version = 1});
  s.host.membership_changed({.epoch = 4, .workers = {0}});
  EXPECT_EQ(s.events.names, Names{}) << "told during a step";
  EXPECT_EQ(s.host.membership().epoch, 0U);
  s.host.step_done(0, {});
  EXPECT_EQ(s.events.names,
            (Names{"Replied", "DeadlinePassed", "Replied", "ExchangeDone", "MembershipChanged", "StepDone"}));
  EXPECT_EQ(s.host.membership().epoch, 4U);
}

TEST(WorkerHost, ArrivalsOutsideAStepReachTheRuleAtOnce) {
  Stage s([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<Started>(event)) then.pull(1, kParams);
  });
  s.host.start(0);
  s.host.replied({.shard = 0, .exchange = 1});
  EXPECT_EQ(s.events.names, (Names{"Started", "Replied", "ExchangeDone"}));
}

TEST(WorkerHost, AnExchangeIsDoneWhenEveryShardHasAnswered) {
  Stage s(overlapping(), 3);
  s.host.start(0);
  s.host.step_done(0, {});
  EXPECT_EQ(s.ports.calls, (Names{"compute 0", "send 0", "send 1", "send 2", "compute 1"}));
  EXPECT_EQ(s.host.in_flight(), 1U);
  for (const ShardId shard : {2U, 0U}) s.host.replied({.shard = shard, .exchange = 7});
  s.host.step_done(0, {});
  EXPECT_EQ(s.host.in_flight(), 1U);
  s.host.replied({.shard = 1, .exchange = 7});
  s.host.step_done(0, {});
  EXPECT_EQ(s.host.in_flight(), 0U);
  EXPECT_EQ(s.events.names.back(), "StepDone");
  EXPECT_EQ(s.host.totals().exchanges, 1U);
}

TEST(WorkerHost, AFragmentAsksItsShardsOnly) {
  Stage s(
      [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        if (std::holds_alternative<Started>(event)) then.push_pull(1, kParams, {.first = 1, .count = 2});
      },
      4);
  s.host.start(0);
  EXPECT_EQ(s.ports.calls, (Names{"send 1", "send 2"}));
  s.host.replied({.shard = 2, .exchange = 1});
  s.host.replied({.shard = 1, .exchange = 1});
  EXPECT_EQ(s.host.in_flight(), 0U);
}

TEST(WorkerHost, AKernelOverSomeShardsTellsThePortWhich) {
  Stage s(
      [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        if (!std::holds_alternative<Started>(event)) return;
        then.apply(fill(kAcc, 0));
        then.apply(fill(kAcc, 0), {.first = 1, .count = 2});
      },
      4);
  s.host.start(0);
  EXPECT_EQ(s.ports.calls, (Names{"run", "run on 1+2"}));
}

TEST(WorkerHost, StepsMayBePassedOver) {
  Stage s([](const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
    if (std::holds_alternative<Started>(event)) then.compute();
    if (!std::holds_alternative<StepDone>(event)) return;
    then.push(context.step, staged(static_cast<std::uint8_t>(context.step)));
    context.step == 1 ? then.compute_at(4) : then.compute_at(context.step);
  });
  s.host.start(0);
  s.host.step_done(0, {});
  EXPECT_EQ(s.ports.calls.back(), "compute 4");
  EXPECT_EQ(s.host.steps(), 4U);
  s.host.step_done(0, {});
  EXPECT_EQ(std::get<StepDone>(s.events.events.back()).step, 4U);
  EXPECT_EQ(std::get<StepDone>(s.events.events.back()).optimizer.t, 1U) << "the optimizer has made no step";
  EXPECT_EQ(s.ports.requests.back().request.clock, 5U);
  EXPECT_EQ(s.ports.calls.back(), "compute 5");
  EXPECT_EQ(s.host.totals().passed, 3U);
}

TEST(WorkerHost, AShardThatAnswersTwiceOrWasNotAskedIsABug) {
  const auto fragment = [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<Started>(event)) then.pull(1, kParams, {.first = 1, .count = 2});
  };
  for (const ShardId wrong : {0U, 1U, 3U}) {
    Stage s(fragment, 4);
    s.host.start(0);
    s.host.replied({.shard = 1, .exchange = 1});
    EXPECT_THROW(s.host.replied({.shard = wrong, .exchange = 1}), std::logic_error) << wrong;
  }
  Stage s(fragment, 4);
  s.host.start(0);
  EXPECT_THROW(s.host.replied({.shard = 1, .exchange = 2}), std::logic_error);
  EXPECT_THROW(s.host.reduced(1, {}), std::logic_error) << "an exchange is no collective";
}

TEST(WorkerHost, OneDroppedPartMakesTheExchangeDropped) {
  Stage s(overlapping(), 2);
  s.host.start(0);
  s.host.step_done(0, {});
  s.host.replied({.shard = 0, .exchange = 7, .staleness = 5});
  s.host.replied({.shard = 1, .exchange = 7, .staleness = 9, .dropped = true});
  s.host.step_done(0, {});
  EXPECT_TRUE(std::get<ExchangeDone>(s.events.events.at(s.events.events.size() - 2)).dropped);
  EXPECT_EQ(s.host.totals().dropped, 1U);
  EXPECT_EQ(s.host.totals().exchanges, 0U);
  EXPECT_EQ(s.host.totals().updates, 1U);
  EXPECT_EQ(s.host.totals().staleness_max, 5U) << "what was dropped was not stale: it was not used";
}

TEST(WorkerHost, RequestsCarryClockEpochRateAndTheVersionThatTheStepBeganOn) {
  Stage s(always_compute([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
            if (const auto* done = std::get_if<StepDone>(&event)) then.push_pull(done->step, staged(0));
          }),
          2, {.self = 3, .versions = {40, 50}});
  s.host.start(0);
  s.host.step_done(0.25, {.lr = 0.5F});
  const auto& first = s.ports.requests.at(1).request;
  EXPECT_EQ(first.worker, 3U);
  EXPECT_EQ(first.clock, 1U);
  EXPECT_EQ(first.epoch, 0.25);
  EXPECT_EQ(first.lr, 0.5F);
  EXPECT_EQ(first.version, 50U) << "of the centre it started from";
  s.host.replied({.shard = 0, .exchange = 0, .version = 44});
  s.host.replied({.shard = 1, .exchange = 0, .version = 51});
  s.host.step_done(0.5, {.lr = 0.25F});
  EXPECT_EQ(s.ports.requests.at(3).request.clock, 2U);
  EXPECT_EQ(s.ports.requests.at(3).request.version, 50U) << "the answer came while the step was under way";
  s.host.replied({.shard = 0, .exchange = 1, .version = 45});
  s.host.replied({.shard = 1, .exchange = 1, .version = 52});
  s.host.step_done(0.75, {});
  EXPECT_EQ(s.ports.requests.at(4).request.version, 44U);
  EXPECT_EQ(s.ports.requests.at(5).request.version, 51U);
}

/// A worker has seen a version only if it received that centre, not if it only added to it.
TEST(WorkerHost, APushOrADroppedAnswerShowsNoVersion) {
  int exchange = 0;
  Stage s(always_compute([&](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (!std::holds_alternative<StepDone>(event)) return;
    ++exchange;
    if (exchange == 1) then.push(1, staged(0));
    if (exchange == 2) then.push_pull(2, staged(0));
    if (exchange >= 3) then.pull(static_cast<ExchangeId>(exchange), staged(0));
  }));
  s.host.start(0);
  s.host.step_done(0, {});
  s.host.replied({.shard = 0, .exchange = 1, .version = 9});
  s.host.step_done(0, {});
  EXPECT_EQ(s.ports.requests.back().request.version, 0U) << "after a push";
  s.host.replied({.shard = 0, .exchange = 2, .version = 10, .dropped = true});
  s.host.step_done(0, {});
  EXPECT_EQ(s.ports.requests.back().request.version, 0U) << "after a dropped exchange";
  s.host.replied({.shard = 0, .exchange = 3, .version = 11});
  s.host.step_done(0, {});
  s.host.replied({.shard = 0, .exchange = 4, .version = 12});
  s.host.step_done(0, {});
  EXPECT_EQ(s.ports.requests.back().request.version, 11U) << "after a pull";
}

TEST(WorkerHost, OvertakenReplyDoesNotLowerTheVersion) {
  int asked = 0;
  Stage s([&](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<Started>(event)) {
      then.pull(1, staged(0));
      then.pull(2, staged(1));
    } else if (std::holds_alternative<ExchangeDone>(event) && ++asked == 2) {
      then.compute();
    } else if (std::holds_alternative<StepDone>(event)) {
      then.pull(3, staged(0));
    }
  });
  s.host.start(0);
  s.host.replied({.shard = 0, .exchange = 2, .version = 6});
  s.host.replied({.shard = 0, .exchange = 1, .version = 5});
  s.host.step_done(0, {});
  EXPECT_EQ(s.ports.requests.back().request.version, 6U);
}

TEST(WorkerHost, StopEndsAStepWithoutABatchAndAcceptsLateAnswers) {
  Stage s(overlapping());
  s.host.start(5);
  s.host.step_done(0, {});
  EXPECT_EQ(s.host.in_flight(), 0U) << "the script exchanges after step 0 only";
  EXPECT_TRUE(s.host.computing());
  s.host.stop();
  EXPECT_FALSE(s.host.computing());
  EXPECT_TRUE(s.host.stopped());
  EXPECT_EQ(s.events.names.back(), "Stopped");
  EXPECT_EQ(std::get<Stopped>(s.events.events.back()).step, 6U);

  Stage t(overlapping(), 2);
  t.host.start(0);
  t.host.step_done(0, {});
  t.host.replied({.shard = 0, .exchange = 7});
  t.events.names.clear();
  t.host.stop();
  EXPECT_EQ(t.events.names, (Names{"Replied", "Stopped"}));
  t.host.replied({.shard = 1, .exchange = 7});
  EXPECT_EQ(t.events.names, (Names{"Replied", "Stopped", "Replied", "ExchangeDone"}));
  EXPECT_EQ(t.host.in_flight(), 0U);
}

TEST(WorkerHost, AStoppedRuleMaySendItsRest) {
  Stage s(always_compute([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<Stopped>(event)) then.push(1, kAcc);
  }));
  s.host.start(0);
  s.host.step_done(0, {});
  s.host.stop();
  EXPECT_EQ(s.ports.calls.back(), "send 0");
}

TEST(WorkerHost, PeerMessagesBelongToTheRuleUntilTheNextStepDone) {
  Stage s(always_compute());
  s.host.start(0);
  s.host.peer_message_arrived({.from = 1, .weight = 0.5, .slot = staged(9)});
  s.ports.calls.clear();
  s.host.step_done(0, {});
  EXPECT_EQ(s.events.names, (Names{"Started", "PeerMessageArrived", "StepDone"}));
  EXPECT_EQ(s.ports.calls, (Names{"compute 1", "release 9"}));
  s.ports.calls.clear();
  s.host.stop();
  s.host.peer_message_arrived({.from = 1, .weight = 0.5, .slot = staged(8)});
  EXPECT_EQ(s.ports.calls, (Names{"release 8"}));
}

TEST(WorkerHost, SkippedSendReachesTheRuleBeforeTheNextStepDone) {
  Stage s(always_compute([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<StepDone>(event)) then.send(1, kParams, 0.25);
  }));
  s.ports.credit = false;
  s.host.start(0);
  s.host.step_done(0, {});
  EXPECT_EQ(s.host.totals().skipped, 1U);
  EXPECT_EQ(s.events.records.back().outcome, ExchangeOutcome::skipped);
  s.ports.credit = true;
  s.events.names.clear();
  s.host.step_done(0, {});
  EXPECT_EQ(s.events.names, (Names{"SendSkipped", "StepDone"}));
  EXPECT_EQ(std::get<SendSkipped>(s.events.events.at(2)), (SendSkipped{1, 0.25}));
  EXPECT_EQ(s.host.totals().exchanges, 1U);
  EXPECT_EQ(s.host.totals().skipped, 1U);
}

TEST(WorkerHost, RandomnessDependsOnSeedWorkerAndStepOnly) {
  std::vector<double> drawn;
  const auto draw = [&](WorkerId self, Step first) {
    Stage s(always_compute([&](const WorkerEvent&, const WorkerContext& context, WorkerActions&) {
              drawn.push_back(context.random().uniform());
            }),
            1, {.self = self, .seed = 5});
    s.host.start(first);
  };
  draw(0, 0), draw(0, 0), draw(1, 0), draw(0, 1);
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_NE(drawn[0], drawn[2]);
  EXPECT_NE(drawn[0], drawn[3]);
}

TEST(WorkerHost, SettledStateContinuesInAnotherHost) {
  const auto script = overlapping();
  Stage s(script, 2);
  s.host.start(0);
  s.host.step_done(1.5, {.lr = 0.25F});
  EXPECT_FALSE(s.host.settled()) << "an exchange is in flight";
  s.host.replied({.shard = 0, .exchange = 7, .version = 3});
  s.host.replied({.shard = 1, .exchange = 7, .version = 4});
  s.events.names.clear();
  s.host.settle();
  EXPECT_EQ(s.events.names, (Names{"Replied", "Replied", "ExchangeDone"}));
  ASSERT_TRUE(s.host.settled());
  EXPECT_TRUE(s.host.computing());

  Stage t(always_compute([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
            const auto* done = std::get_if<StepDone>(&event);
            if (done && done->step == 1) then.push_pull(8, staged(0));
          }),
          2);
  ASSERT_TRUE(t.host.restore(s.host.state()));
  EXPECT_TRUE(t.host.computing());
  EXPECT_EQ(t.ports.calls, Names{"compute 1"});
  t.host.step_done(1.75, {.lr = 0.125F});
  ASSERT_EQ(t.ports.requests.size(), 2U);
  EXPECT_EQ(t.ports.requests[0].request.clock, 2U);
  EXPECT_EQ(t.ports.requests[0].request.version, 3U) << "what its step was computed on";
  EXPECT_EQ(t.ports.requests[1].request.version, 4U);
}

TEST(WorkerHost, PeerMessagesStayUnreadWhenItSettlesAndSkippedSendsAreSaved) {
  const auto sending = always_compute([](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<StepDone>(event)) then.send(1, kParams, 0.25);
  });
  Stage s(sending);
  s.ports.credit = false;
  s.host.start(0);
  s.host.step_done(0, {});
  s.host.peer_message_arrived({.from = 2, .weight = 0.125, .slot = staged(9)});
  s.events.names.clear();
  s.host.settle();
  EXPECT_EQ(s.events.names, Names{});
  ASSERT_TRUE(s.host.settled());
  Stage t(always_compute());
  ASSERT_TRUE(t.host.restore(s.host.state()));
  t.host.step_done(0, {});
  ASSERT_EQ(t.events.names, (Names{"SendSkipped", "StepDone"}));
  EXPECT_EQ(std::get<SendSkipped>(t.events.events[0]), (SendSkipped{1, 0.25}));
  Stage u(always_compute());
  EXPECT_EQ(u.host.restore("step=x").error().code, core::Errc::corrupt);
}

TEST(WorkerHost, SettlingBeforeStartOrInFlightIsABug) {
  Stage s(overlapping());
  EXPECT_THROW(s.host.settle(), std::logic_error) << "not started";
  s.host.start(0);
  s.host.step_done(0, {});
  EXPECT_THROW(static_cast<void>(s.host.state()), std::logic_error) << "in flight";
}

}  // namespace
}  // namespace troupe::strategies
