/// Actions that the host refuses: bugs of rules and of ports, each an std::logic_error.
#include <stdexcept>

#include <gtest/gtest.h>

#include "strategies/host/worker_host.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

using AnswerActions = std::function<void(WorkerActions&)>;

/// A rule that answers `on_started`, then at each StepDone `on_step`, at each BucketReady `on_bucket`, at each ExchangeDone `on_done`.
struct Says {
  AnswerActions on_started = [](WorkerActions& then) { then.compute(); };
  AnswerActions on_step = {};
  AnswerActions on_bucket = {};
  AnswerActions on_done = {};
  AnswerActions on_stopped = {};
};

struct ActionStage {
  explicit ActionStage(Says says, int buckets = 2)
      : ports(2),
        host(std::make_unique<ScriptedWorker>(
                 [says](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
                   const auto say = [&](const AnswerActions& answer) {
                     if (answer) answer(then);
                   };
                   if (std::holds_alternative<Started>(event)) say(says.on_started);
                   if (std::holds_alternative<StepDone>(event)) say(says.on_step);
                   if (std::holds_alternative<BucketReady>(event)) say(says.on_bucket);
                   if (std::holds_alternative<ExchangeDone>(event)) say(says.on_done);
                   if (std::holds_alternative<Stopped>(event)) say(says.on_stopped);
                 }),
             {ports, &ports, &ports, &ports}, {.buckets = buckets}) {}
  NotingPorts ports;
  WorkerHost host;
};

/// Expects that the host refuses both actions at Started.
void expect_refused(const AnswerActions& actions, const char* what) {
  ActionStage s({.on_started = actions});
  EXPECT_THROW(s.host.start(0), std::logic_error) << what;
}
void expect_allowed(const AnswerActions& actions, const char* what) {
  ActionStage s({.on_started = actions});
  EXPECT_NO_THROW(s.host.start(0)) << what;
}

TEST(WorkerHostActions, ALentSlotIsNotTouched) {
  expect_refused([](auto& then) { then.push_pull(1, kParams), then.compute(); }, "compute with lent parameters");
  expect_refused([](auto& then) { then.reduce(1, kGrads, ReduceOp::sum), then.compute(); },
                 "compute with lent gradients");
  expect_refused([](auto& then) { then.broadcast(1, {SlotKind::statistics}, 0), then.compute(); },
                 "compute with lent statistics");
  expect_refused([](auto& then) { then.push(1, kAcc), then.apply(fill(kAcc, 0)); }, "write a lent slot");
  expect_refused([](auto& then) { then.push(1, kAcc), then.apply(copy(kAnchor, kAcc)); }, "read a lent slot");
  expect_refused([](auto& then) { then.push(1, kAcc), then.pull(2, kAcc); }, "lend twice");
  expect_refused([](auto& then) { then.push(1, kAcc), then.reduce(2, kAcc, ReduceOp::sum); }, "reduce a lent slot");
  expect_refused([](auto& then) { then.reduce(1, kAcc, ReduceOp::sum, 0), then.broadcast(2, kAcc, 0); },
                 "broadcast what is being reduced");
  expect_refused([](auto& then) { then.reduce(1, kAcc, ReduceOp::sum, 0), then.reduce(2, kAcc, ReduceOp::sum); },
                 "reduce all with a bucket away");
  expect_refused([](auto& then) { then.reduce(1, kAcc, ReduceOp::sum, 0), then.reduce(2, kAcc, ReduceOp::sum, 0); },
                 "reduce a bucket twice");
  expect_refused([](auto& then) { then.pull(1, kAcc), then.send(1, kAcc, 0.5); }, "send a lent slot to a peer");
  expect_allowed([](auto& then) { then.push(1, kAcc), then.compute(); }, "compute while a copy travels");
  expect_allowed([](auto& then) { then.reduce(1, kAcc, ReduceOp::sum, 0), then.reduce(2, kAcc, ReduceOp::sum, 1); },
                 "two buckets at once");
  expect_allowed([](auto& then) { then.push(1, kAcc), then.pull(2, staged(0)), then.apply(fill(kAnchor, 0)); },
                 "two slots at once");
}

/// The stage has two shards.
TEST(WorkerHostActions, ShardsOfASlotThatDoNotMeetAreApart) {
  constexpr Shards kFirst{0, 1};
  constexpr Shards kSecond{1, 1};
  expect_allowed([=](auto& then) { then.push(1, kAcc, kFirst), then.push_pull(2, kAcc, kSecond); }, "two fragments");
  expect_allowed([=](auto& then) { then.push(1, kAcc, kFirst), then.apply(fill(kAcc, 0), kSecond); }, "work beside it");
  expect_allowed([=](auto& then) { then.push(1, kAcc, kFirst), then.apply(copy(kAcc, kParams), kSecond); },
                 "the same with two slots");
  expect_refused([=](auto& then) { then.push(1, kAcc, kFirst), then.pull(2, kAcc, kFirst); }, "a fragment twice");
  expect_refused([=](auto& then) { then.push(1, kAcc), then.push(2, kAcc, kSecond); }, "a fragment of what is away");
  expect_refused([=](auto& then) { then.push(1, kAcc, kSecond), then.push(2, kAcc); }, "all with a fragment away");
  expect_refused([=](auto& then) { then.push(1, kAcc, kFirst), then.apply(fill(kAcc, 0), kFirst); }, "write it");
  expect_refused([=](auto& then) { then.push(1, kAcc, kFirst), then.apply(copy(kParams, kAcc), kFirst); }, "read it");
  expect_refused([=](auto& then) { then.push(1, kAcc, kFirst), then.apply(fill(kAcc, 0)); }, "write all of it");
  expect_refused([=](auto& then) { then.push(1, kAcc, kFirst), then.apply(fill(kAcc, 0), {0, 2}); }, "write around it");
  expect_refused([=](auto& then) { then.reduce(1, kAcc, ReduceOp::sum), then.apply(fill(kAcc, 0), kFirst); },
                 "write to what is being reduced");
  expect_refused([=](auto& then) { then.pull(1, kParams, kFirst), then.compute(); }, "compute with a fragment away");
  expect_refused([=](auto& then) { then.compute(), then.apply(fill(kParams, 0), kFirst); }, "write to what computes");
}

TEST(WorkerHostActions, KernelsOverSomeShardsNeedVectorsThatAreCutIntoThem) {
  expect_allowed([](auto& then) { then.apply(clip(kGrads, {.clip_value = 1}), {0, 1}); }, "element by element");
  expect_refused([](auto& then) { then.apply(clip(kGrads, {.clip_norm = 1}), {0, 1}); }, "a norm of a part");
  expect_refused(
      [](auto& then) {
        then.apply(optimize(kParams, kGrads, kVelocity, {.clip_norm = 1}), {0, 1});
      },
      "a step that clips by it");
  expect_refused([](auto& then) { then.apply(fill(kStatistics, 0), {0, 1}); }, "statistics are not cut");
  expect_refused([](auto& then) { then.apply(fill(kAcc, 0), {.first = 1, .count = 2}); }, "a third shard of two");
  expect_allowed([](auto& then) { then.apply(fill(kAcc, 0), {.first = 1, .count = 1}); }, "the last shard");
  expect_allowed([](auto& then) { then.apply(clip(kGrads, {.clip_norm = 1})); }, "the whole vector");
}

TEST(WorkerHostActions, SlotsOfARunningStepAreNotTouched) {
  expect_refused([](auto& then) { then.compute(), then.apply(fill(kParams, 0)); }, "write parameters");
  expect_refused([](auto& then) { then.compute(), then.apply(copy(staged(0), kParams)); }, "copy parameters");
  expect_refused([](auto& then) { then.compute(), then.push_pull(1, kParams); }, "lend parameters");
  expect_refused([](auto& then) { then.compute(), then.reduce(1, kGrads, ReduceOp::mean); }, "reduce gradients");
  expect_refused([](auto& then) { then.compute(), then.broadcast(1, kParams, 0); }, "broadcast parameters");
  expect_refused([](auto& then) { then.compute(), then.send(1, kParams, 0.5); }, "send parameters to a peer");
  expect_refused([](auto& then) { then.compute(), then.compute(); }, "compute twice");
  expect_allowed([](auto& then) { then.compute(), then.apply(fill(kAcc, 0)), then.push(1, kAcc); },
                 "work on its own copy");
}

TEST(WorkerHostActions, IdsShardsAndPortsMustExist) {
  expect_refused([](auto& then) { then.push(1, kAcc), then.push(1, kAnchor); }, "an id twice");
  expect_refused([](auto& then) { then.push(1, kAcc, {.first = 1, .count = 2}); }, "a third shard of two");
  expect_refused([](auto& then) { then.push(1, kAcc, {.first = 0xffffffff, .count = 2}); }, "shards that wrap around");
  expect_allowed([](auto& then) { then.push(1, kAcc, {.first = 1, .count = 1}); }, "the last shard");

  const auto lonely = [](const AnswerActions& actions) {
    NotingPorts ports;
    WorkerHost host(std::make_unique<ScriptedWorker>(
                        [&](const WorkerEvent&, const WorkerContext&, WorkerActions& then) { actions(then); }),
                    {ports, nullptr, nullptr, nullptr}, {});
    host.start(0);
  };
  EXPECT_THROW(lonely([](auto& then) { then.push(1, kAcc); }), std::logic_error);
  EXPECT_THROW(lonely([](auto& then) { then.apply(fill(kAcc, 0), {0, 1}); }), std::logic_error);
  EXPECT_THROW(lonely([](auto& then) { then.reduce(1, kAcc, ReduceOp::sum); }), std::logic_error);
  EXPECT_THROW(lonely([](auto& then) { then.broadcast(1, kAcc, 0); }), std::logic_error);
  EXPECT_THROW(lonely([](auto& then) { then.send(1, kAcc, 1); }), std::logic_error);
  EXPECT_NO_THROW(lonely([](auto& then) { then.compute(); }));
}

TEST(WorkerHostActions, RuleMayReduceOnlyReadyBuckets) {
  const auto answer = [](const AnswerActions& answer) {
    ActionStage s({.on_bucket = answer});
    s.host.start(0);
    s.host.bucket_ready(0);
  };
  EXPECT_NO_THROW(answer([](auto& then) { then.reduce(1, kGrads, ReduceOp::mean, 0); }));
  EXPECT_THROW(answer([](auto& then) { then.apply(fill(kAcc, 0)); }), std::logic_error);
  EXPECT_THROW(answer([](auto& then) { then.skip(); }), std::logic_error);
  EXPECT_THROW(answer([](auto& then) { then.reduce(1, kGrads, ReduceOp::mean, 1); }), std::logic_error)
      << "not ready yet";
  EXPECT_THROW(answer([](auto& then) { then.reduce(1, kGrads, ReduceOp::mean); }), std::logic_error)
      << "not all of it is ready";
  EXPECT_THROW(answer([](auto& then) { then.reduce(1, kParams, ReduceOp::mean, 0); }), std::logic_error);
}

TEST(WorkerHostActions, AStepReportsAllItsBucketsInOrderOrNone) {
  const auto step = [](const std::vector<int>& buckets) {
    ActionStage s({});
    s.host.start(0);
    for (const int bucket : buckets) s.host.bucket_ready(bucket);
    s.host.step_done(0, {});
  };
  EXPECT_NO_THROW(step({}));
  EXPECT_NO_THROW(step({0, 1}));
  EXPECT_THROW(step({0}), std::logic_error);
  EXPECT_THROW(step({1}), std::logic_error);
  EXPECT_THROW(step({0, 0}), std::logic_error);
  EXPECT_THROW(step({0, 1, 2}), std::logic_error);
}

TEST(WorkerHostActions, ComputeBelongsAfterStepDoneAndBeforeStopped) {
  // An answer that arrived during the step comes first: the step's own gradients are not applied yet.
  ActionStage early({.on_started = [](auto& then) { then.push_pull(1, staged(0)), then.compute(); },
                     .on_done = [](auto& then) { then.compute(); }});
  early.host.start(0);
  early.host.replied({.shard = 0, .exchange = 1});
  early.host.replied({.shard = 1, .exchange = 1});
  EXPECT_THROW(early.host.step_done(0, {}), std::logic_error);

  ActionStage back({.on_step = [](auto& then) { then.compute_at(0); }});
  back.host.start(0);
  EXPECT_THROW(back.host.step_done(0, {}), std::logic_error) << "a step that is over";

  ActionStage late({.on_stopped = [](auto& then) { then.compute(); }});
  late.host.start(0);
  EXPECT_THROW(late.host.stop(), std::logic_error);
}

TEST(WorkerHostActions, AnswersWithoutARequestAreBugs) {
  ActionStage s({});
  EXPECT_THROW(s.host.step_done(0, {}), std::logic_error) << "no step had begun";
  EXPECT_THROW(s.host.bucket_ready(0), std::logic_error);
  EXPECT_THROW(s.host.stop(), std::logic_error) << "it had not asked for a batch";
  s.host.start(0);
  EXPECT_THROW(s.host.start(0), std::logic_error) << "started twice";
  s.host.bucket_ready(0);
  EXPECT_THROW(s.host.stop(), std::logic_error) << "in the middle of a step";
}

TEST(WorkerHostActions, APortMustNotAnswerFromInsideACall) {
  ActionStage s({.on_started = [](auto& then) { then.push_pull(1, kParams); }});
  s.ports.inside = [&] { s.host.replied({.shard = 0, .exchange = 1}); };
  EXPECT_THROW(s.host.start(0), std::logic_error);
}

}  // namespace
}  // namespace troupe::strategies
