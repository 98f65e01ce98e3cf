/// The virtual run must detect violations: each test breaks one of its guards on purpose.
#include "sim/explore/world/virtual_run.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/strategies/scripted.hpp"

namespace troupe::explore {
namespace {

using namespace std::chrono_literals;

/// Scripted rules as a strategy.
class Scripted final : public Strategy {
 public:
  Scripted(Needs needs, ScriptedWorker::Script worker, ScriptedServer::Script server = {})
      : needs_(std::move(needs)), worker_(std::move(worker)), server_(std::move(server)) {}
  Needs needs() const override { return needs_; }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<ScriptedWorker>(worker_); }
  std::unique_ptr<ServerRule> server() const override {
    return server_ ? std::make_unique<ScriptedServer>(server_) : nullptr;
  }

 private:
  Needs needs_;
  ScriptedWorker::Script worker_;
  ScriptedServer::Script server_;
};

void run(const Strategy& strategy, VirtualRunOptions options = {}) {
  VirtualRun run(strategy, std::move(options));
  run.execute();
}

const ScriptedWorker::Script kPushEveryStep = [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
  if (const auto* done = std::get_if<StepDone>(&event)) return then.push_pull(done->step, kParams);
  if (std::holds_alternative<Started>(event) || std::holds_alternative<ExchangeDone>(event)) then.compute();
};

TEST(VirtualRunTest, AWorkerThatWaitsForeverIsAViolation) {
  const Scripted idle({}, [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<Started>(event)) then.compute();  // and never again
  });
  EXPECT_THROW(run(idle), Violation);
}

TEST(VirtualRunTest, ARequestThatIsHeldForeverIsAViolation) {
  const Scripted never({.servers = true}, kPushEveryStep,
                       [](const ServerEvent& event, const ServerContext&, ServerActions& then) {
                         if (const auto* request = std::get_if<Request>(&event)) then.hold(request->id);
                       });
  EXPECT_THROW(run(never), Violation);
}

TEST(VirtualRunTest, ARunThatNeverQuiescesIsAViolation) {
  const Scripted restless({.servers = true}, kPushEveryStep,
                          [](const ServerEvent& event, const ServerContext&, ServerActions& then) {
                            if (const auto* request = std::get_if<Request>(&event))
                              then.reply(request->id), then.set_deadline(1, 1us);
                            if (std::holds_alternative<DeadlinePassed>(event)) then.set_deadline(1, 1us);
                          });
  EXPECT_THROW(run(restless, {.steps = 1}), Violation);
}

TEST(VirtualRunTest, ACollectiveThatNotAllJoinIsAViolation) {
  const Scripted lonely({.group = true, .in_step = true},
                        [](const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
                          if (std::holds_alternative<StepDone>(event) && context.self == 0)
                            return then.reduce(0, kGrads, ReduceOp::sum);
                          if (!std::holds_alternative<MembershipChanged>(event) &&
                              !std::holds_alternative<Stopped>(event) && !std::holds_alternative<BucketReady>(event))
                            then.compute();
                        });
  EXPECT_THROW(run(lonely), Violation);
}

TEST(VirtualRunTest, MembersThatDisagreeAboutACollectiveAreAViolation) {
  const Scripted apart({.group = true, .in_step = true},
                       [](const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
                         if (std::holds_alternative<Started>(event))
                           then.reduce(0, kParams, context.self == 0 ? ReduceOp::sum : ReduceOp::mean);
                       });
  EXPECT_THROW(run(apart), Violation);
}

TEST(VirtualRunTest, SlotsOutsideNeedsCannotBeLent) {
  const Scripted greedy(
      {.servers = true},
      [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
        if (std::holds_alternative<Started>(event)) then.push(0, kAcc);
      },
      [](const ServerEvent&, const ServerContext&, ServerActions&) {});
  EXPECT_THROW(run(greedy), Violation);
}

TEST(VirtualRunTest, DeadlinesPassAndEveryEventReachesTheTrace) {
  const Scripted patient({}, [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<StepDone>(event)) then.set_deadline(3, 5ms);
    if (std::holds_alternative<Started>(event) || std::holds_alternative<DeadlinePassed>(event)) then.compute();
  });
  VirtualRun run(patient, {.workers = 1, .steps = 4});
  run.execute();
  EXPECT_EQ(run.leases_done(), 4U);
  EXPECT_GE(run.queue().now(), 20ms);
  std::size_t deadlines = 0;
  for (const auto& [worker, event] : run.trace().worker_events())
    deadlines += std::holds_alternative<DeadlinePassed>(event) ? 1 : 0;
  EXPECT_EQ(deadlines, 4U);
}

TEST(VirtualRunTest, AFasterWorkerTakesMoreLeases) {
  const Scripted alone({}, [](const WorkerEvent& event, const WorkerContext&, WorkerActions& then) {
    if (std::holds_alternative<StepDone>(event) || std::holds_alternative<Started>(event)) then.compute();
  });
  VirtualRun run(alone, {.workers = 2, .steps = 50, .slowdown = {1, 4}});
  run.execute();
  EXPECT_EQ(run.leases_done(), 100U);
  EXPECT_GT(run.worker(0).host().steps(), 3 * run.worker(1).host().steps());
}

TEST(VirtualMemory, LentMemoryIsNotUsedAndReturnsOnce) {
  Memory memory(64);
  memory.add(kAcc);
  const auto part = memory.lend(kAcc, {16, 16});
  EXPECT_EQ(part.size(), 16U);
  EXPECT_THROW((void)memory.use(kAcc), Violation);
  EXPECT_THROW((void)memory.use(kAcc, {24, 16}), Violation);
  EXPECT_THROW((void)memory.lend(kAcc, {0, 17}), Violation);
  EXPECT_NO_THROW((void)memory.use(kAcc, {0, 16}));
  EXPECT_NO_THROW((void)memory.use(kAcc, {32, 32}));
  memory.give_back(kAcc, {16, 16});
  EXPECT_THROW(memory.give_back(kAcc, {16, 16}), Violation);
  EXPECT_NO_THROW((void)memory.use(kAcc));
}

TEST(VirtualMemory, ASliceChangedOnItsWayIsFoundOut) {
  for (const auto carriage : {Carriage::in_place, Carriage::carried}) {
    auto home = floats(16);
    Parcel parcel(home.view(), carriage, Transfer::push_pull);
    home.view()[3] = 1;  // the worker that lent it
    EXPECT_THROW(parcel.unpack(), Violation);
  }
  auto home = floats(16);
  Parcel parcel(home.view(), Carriage::in_place, Transfer::push_pull);
  parcel.open()[2] = 5;  // a server that holds it and does not announce the change
  EXPECT_THROW((void)parcel.open(), Violation);
}

TEST(VirtualMemory, BothTransfersReturnTheServersResult) {
  for (const auto carriage : {Carriage::in_place, Carriage::carried}) {
    auto home = floats(16);
    home.view()[0] = 2;
    Parcel parcel(home.view(), carriage, Transfer::push_pull);
    EXPECT_EQ(parcel.open()[0], 2);
    EXPECT_EQ(std::isnan(home.view()[0]), carriage == Carriage::carried) << "while it is away nobody can use it";
    parcel.open()[0] = 7;
    parcel.seal();
    parcel.unpack();
    EXPECT_EQ(home.view()[0], 7);
  }
  auto home = floats(16);
  home.view()[0] = 2;
  Parcel push(home.view(), Carriage::carried, Transfer::push);
  push.open()[0] = 7;
  push.seal();
  push.unpack();
  EXPECT_EQ(home.view()[0], 2) << "nothing comes back from a push";
  Parcel pull(home.view(), Carriage::carried, Transfer::pull);
  EXPECT_TRUE(std::isnan(pull.open()[0])) << "nothing travels to the server with a pull";
}

TEST(VirtualMemory, CutsCoverEverythingOnceAndAligned) {
  for (const std::size_t total : {16U, 80U, 100U, 1000U}) {
    for (const std::size_t parts : {1U, 2U, 3U, 7U}) {
      std::size_t next = 0;
      for (std::size_t part = 0; part < parts; ++part) {
        const auto range = cut(total, parts, part);
        EXPECT_EQ(range.offset, next);
        EXPECT_EQ(range.offset % core::kAlignmentFloats, 0U);
        next += range.count;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(VirtualTime, ActionsHappenInOrderOfTimeAndThenOfPlanning) {
  EventQueue queue;
  std::vector<int> order;
  queue.at(2ms, [&] { order.push_back(3); });
  queue.at(1ms, [&] { order.push_back(1), queue.after(0ms, [&] { order.push_back(2); }); });
  queue.at(2ms, [&] { order.push_back(4); });
  while (queue.run_next()) {
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(queue.now(), 2ms);
  EXPECT_THROW(queue.at(1ms, [] {}), std::logic_error);
}

TEST(VirtualNetwork, OnlyFifoChannelsKeepTheirOrder) {
  const auto arrivals = [](Order order) {
    EventQueue queue;
    Network network(queue, 1, Delays::extreme);
    std::vector<int> seen;
    for (int i = 0; i < 50; ++i) network.send({Traffic::request, 1, 2}, order, [&seen, i] { seen.push_back(i); });
    while (queue.run_next()) {
    }
    return seen;
  };
  const auto fifo = arrivals(Order::fifo);
  EXPECT_TRUE(std::is_sorted(fifo.begin(), fifo.end()));
  const auto any = arrivals(Order::any);
  EXPECT_FALSE(std::is_sorted(any.begin(), any.end()));
  EXPECT_EQ(any.size(), 50U);
}

}  // namespace
}  // namespace troupe::explore
