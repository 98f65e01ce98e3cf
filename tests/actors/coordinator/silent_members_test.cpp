// Transfers that take hours but progress, and transfers that stall: which member waits, and until when. In the test's own time.
#include <atomic>

#include <gtest/gtest.h>

#include "actors/worker/worker.hpp"
#include "experiment/exchange_plan.hpp"
#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Options = std::vector<std::string>;

/// Two workers, each at a site of its own.
class CoordinatorOfSites : public LoneCoordinator {
 public:
  explicit CoordinatorOfSites(const std::string& strategy, const Options& more = {})
      : LoneCoordinator([&] {
          Options options{"strategy.name=" + strategy, "cluster.workers=2"};
          options.insert(options.end(), more.begin(), more.end());
          return options;
        }()) {
    worker_sites = {1, 2};
  }
  /// Transfers between the coordinator's site and `site` progress for `time`, reported every 30 s.
  void move(std::uint32_t site, std::chrono::minutes time) {
    for (; time.count() > 0; --time) {
      for (int half = 0; half < 2; ++half) {
        tell(TransferNews{{0, site}});
        pass(30s);
      }
    }
  }
  [[nodiscard]] bool noted(const std::string& text) {
    bool found = false;
    while (!found && heard(recorder, [&](const Note& note) { found = note.text.find(text) != std::string::npos; })) {
    }
    return found;
  }
};

constexpr const char* kSilent = "it does not answer, and nothing moves to it or from it";

TEST(SilentMembers, SnapshotThatMovesHasNoDeadline) {
  CoordinatorOfSites run("bsp");
  run.begin();
  caf::typed_response_promise<SnapshotTaken> taken;
  ASSERT_TRUE(LoneCoordinator::heard(*run.workers[0], [&](const SnapshotOrder&, const BorrowedView&) {
    return taken = (*run.workers[0])->make_response_promise<SnapshotTaken>();
  }));
  run.move(1, 120min);
  EXPECT_FALSE(run.noted("is lost"));
  taken.deliver(SnapshotTaken{});
  run.run();
  run.take_snapshots();
  EXPECT_TRUE(run.order_to_write());
}

TEST(SilentMembers, SnapshotThatStandsStillIsALoss) {
  CoordinatorOfSites run("easgd", {"cluster.servers=1"});
  run.begin_training();
  run.tell(JournalFull{});  // the coordinator asks the workers for their states, one after the other
  ASSERT_TRUE(run.answered(*run.workers[0], [](const SettleOrder&) { return Settled{}; }));
  ASSERT_TRUE(run.answered(*run.workers[1], [](const SettleOrder&) { return Settled{}; }));
  run.move(1, 10min);  // the last report is 30 s old
  run.pass(28s);
  EXPECT_FALSE(run.noted("is lost"));
  run.pass(3s);
  EXPECT_TRUE(run.noted(std::string("worker 0 is lost: ") + kSilent));
}

TEST(SilentMembers, OnlyTheMemberWhoseTransferStandsStillIsLost) {
  CoordinatorOfSites run("easgd", {"cluster.servers=1"});
  run.begin_training();
  run.tell(JournalFull{});
  // Both have an exchange under way; only that of worker 0 progresses.
  run.move(1, 2min);
  EXPECT_TRUE(run.noted(std::string("worker 1 is lost: ") + kSilent));
  EXPECT_FALSE(run.noted("is lost"));
  EXPECT_TRUE(LoneCoordinator::heard(*run.workers[0], [](const SettleOrder&) { return Settled{}; }));
}

/// Its device hangs, say. Under easgd nobody else waits for it, and its batches alone would keep the epoch from its end.
TEST(SilentMembers, AWorkerWhoseStepDoesNotEndIsLost) {
  CoordinatorOfSites run("easgd", {"cluster.servers=1"});
  run.begin_training();
  ASSERT_EQ(run.ask_for_one().size(), 1U);
  for (int k = 0; k < 20; ++k) {
    run.pass(60s);
    run.train({});  // it waits for others, and says so
  }
  run.pass(11min - 2s);
  EXPECT_FALSE(run.noted("is lost"));
  run.pass(4s);
  EXPECT_TRUE(run.noted("worker 0 is lost: it has batches to compute, and has reported nothing for 66"));
}

TEST(SilentMembers, ExchangeDeadlineBelowAMinuteHoldsForTheCoordinatorToo) {
  CoordinatorOfSites run("bsp", {"exchange.deadline_s=7"});
  run.begin();
  run.pass(5s);
  EXPECT_FALSE(run.noted("is lost"));
  run.pass(3s);
  EXPECT_TRUE(run.noted("worker 0 is lost: "));
}

TEST(SilentMembers, WorkersLearnWhichSitesMoveBytes) {
  CoordinatorOfSites run("bsp");
  run.begin();
  run.tell(TransferNews{{2, 0}});
  run.tell(TransferNews{{0, 1}});
  run.pass(1s);
  for (const auto& worker : run.workers)
    EXPECT_TRUE(LoneCoordinator::heard(*worker, [](const TransferNews& news) {
      EXPECT_EQ(news.sites, (std::vector<std::uint32_t>{0, 1, 2}));
    }));
  run.pass(5s);
  for (const auto& worker : run.workers) EXPECT_FALSE(LoneCoordinator::heard(*worker, [](const TransferNews&) {}));
}

class SlowEvaluation : public ::testing::Test {
 protected:
  SlowEvaluation() {
    run_.begin_training();
    for (int step = 0; step < 2; ++step) run_.train(run_.ask_for_one());
    run_.take_snapshots();
    self_->send(run_.actor(), AwaitEnd{});
    run_.run();
  }
  LoneCoordinator run_{{"cluster.workers=1", "data.train_samples=40", "run.epochs=9"}};
  caf::scoped_actor self_{run_.system()};
};

TEST_F(SlowEvaluation, HasNoDeadlineWhileItProceeds) {
  caf::typed_response_promise<Evaluated> evaluated;
  ASSERT_TRUE(
      LoneCoordinator::heard(run_.evaluator, [&](const EvaluateOrder&, const BorrowedView&, const BorrowedView&) {
        return evaluated = run_.evaluator->make_response_promise<Evaluated>();
      }));
  for (int k = 0; k < 60; ++k) {
    run_.tell(StillEvaluating{});
    run_.pass(9min);
  }
  EXPECT_FALSE(LoneCoordinator::heard(self_, [](const RunEnd&) {}));
  evaluated.deliver(Evaluated{.test = {.samples = 1}});
  run_.run();
  EXPECT_TRUE(LoneCoordinator::heard(run_.recorder, [](const EpochReport&) {}));
}

TEST_F(SlowEvaluation, EndsTheRunWhenItStandsStill) {
  run_.tell(StillEvaluating{});
  run_.pass(10min - 3s);
  EXPECT_FALSE(LoneCoordinator::heard(self_, [](const RunEnd&) {}));
  run_.pass(5s);
  EXPECT_TRUE(LoneCoordinator::heard(self_, [](const RunEnd& end) { EXPECT_EQ(end.error.code, core::Errc::timeout); }));
}

/// One clock for all threads.
class TestClock final : public core::Clock {
 public:
  [[nodiscard]] core::Duration now() const noexcept override { return core::Duration(now_.load()); }
  void advance(core::Duration by) noexcept { now_ += by.count(); }

 private:
  std::atomic<core::Duration::rep> now_ = core::Duration(1s).count();
};

/// Worker 0 of two at different sites; the server is at a third site. The test plays all other members.
class WorkerOfASite : public ::testing::Test {
 protected:
  void begin(const Options& options) {
    run_.emplace(options);
    spec_ = *experiment::build_run_spec(*run_->settings(), true);
    worker_ = system_.spawn(
        worker, WorkerSetup{.workers = 2,
                            .graph = spec_->graph,
                            .backend = &tests::backend(),
                            .compile = {.batch = spec_->settings->batch(0), .threads = 1, .arenas = &memory_},
                            .plan = {},
                            .strategy = spec_->strategy,
                            .train = spec_->settings->train,
                            .servers = spec_->servers,
                            .clock = &clock_,
                            .exchange_deadline = 100s});
    self_->send(worker_, Prepare{});
    self_->send(worker_, ReplicaStart{std::make_shared<const StartState>(experiment::start_state(*spec_, nullptr))});
    ActorDirectory actors;
    actors.coordinator = caf::actor_cast<CoordinatorActor>(self_);
    actors.recorder = caf::actor_cast<RecorderActor>(self_);
    actors.exchanger = caf::actor_cast<ExchangerActor>(self_);
    actors.workers = {worker_, caf::actor_cast<WorkerActor>(self_)};
    actors.loaders.assign(2, caf::actor_cast<LoaderActor>(self_));
    actors.servers.assign(spec_->servers, caf::actor_cast<ServerActor>(self_));
    actors.worker_sites = {1, 2};
    actors.server_sites.assign(spec_->servers, 3);
    actors.exchange = experiment::to_json(experiment::ExchangePlan{});
    self_->send(worker_, actors);
    images_.resize(static_cast<std::size_t>(spec_->settings->batch(0) * spec_->graph->input().size()));
    labels_.resize(static_cast<std::size_t>(spec_->settings->batch(0)));
    self_->send(worker_, BatchReady{.lease = {.count = spec_->settings->batch(0)}},
                BorrowedBatch{images_, labels_, {}});
    scheduler().run();
  }
  void TearDown() override {
    caf::anon_send(worker_, Halt{});
    scheduler().run();
  }
  void pass(std::chrono::seconds time) {
    for (; time.count() > 0; --time) {
      clock_.advance(1s);
      scheduler().advance_time(1s);
      scheduler().run();
    }
  }
  void moved(std::uint32_t site) {
    self_->send(worker_, TransferNews{{site}});
    scheduler().run();
  }
  template <class Handler>
  [[nodiscard]] bool heard(Handler handler) {
    return LoneCoordinator::heard(self_, std::move(handler));
  }
  [[nodiscard]] bool in_trouble(const std::string& text) {
    return heard([&](const RunError& run_error) {
      EXPECT_EQ(run_error.code, core::Errc::timeout);
      EXPECT_NE(run_error.text.find(text), std::string::npos) << run_error.text;
    });
  }
  [[nodiscard]] caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  std::optional<tests::SmallRun> run_;
  std::optional<experiment::RunSpec> spec_;
  TestClock clock_;
  core::HostAllocator memory_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  TestedSystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  WorkerActor worker_;
};

TEST_F(WorkerOfASite, WaitsForAReductionWhileAProcessOfTheGroupMoves) {
  begin({"strategy.name=bsp"});
  ASSERT_TRUE(heard([](const CollectiveOrder&, const BorrowedView&) {}));
  for (int k = 0; k < 50; ++k) {
    pass(90s);
    moved(2);
  }
  EXPECT_FALSE(heard([](const RunError&) {}));
  for (int k = 0; k < 10; ++k) {  // transfers with other sites do not count
    pass(9s);
    moved(5);
  }
  EXPECT_FALSE(heard([](const RunError&) {}));
  pass(10s);
  EXPECT_TRUE(in_trouble("worker 0: a reduction with other sites has not ended, and nothing has moved there"));
}

TEST_F(WorkerOfASite, WaitsForAServerWhileItsProcessMovesBytes) {
  begin({"strategy.name=sync_easgd", "strategy.tau=1", "cluster.servers=1"});
  ASSERT_TRUE(heard([](const ShardMessage&, const BorrowedView&) {}));
  for (int k = 0; k < 50; ++k) {
    pass(90s);
    moved(3);
  }
  EXPECT_FALSE(heard([](const RunError&) {}));
  pass(100s);
  EXPECT_TRUE(in_trouble("worker 0: a server has not answered exchange "));
}

/// The coordinator would call it silent after 2 s without a report.
TEST_F(WorkerOfASite, ReportsOnceASecondWhileItWaitsForTheBound) {
  begin({"strategy.name=ssp", "strategy.s=0", "cluster.servers=1"});
  ShardAnswer pushed;
  ASSERT_TRUE(
      heard([&](const ShardMessage& push, const BorrowedView&) { pushed.reply.exchange = push.request.exchange; }));
  self_->send(worker_, pushed);
  scheduler().run();
  ASSERT_TRUE(heard([](const ShardMessage& pull, const BorrowedView&) {
    EXPECT_EQ(pull.request.kind, strategies::Transfer::pull);
  })) << "which the server holds until the slowest worker has come so far";
  while (heard([](const WorkerProgress&) {})) {
  }
  for (int second = 0; second < 5; ++second) {
    pass(1s);
    int reports = 0;
    while (heard([&](const WorkerProgress& progress) {
      ++reports;
      EXPECT_EQ(progress.steps, 1U);
      EXPECT_TRUE(progress.done.empty()) << "its update is not finished";
    })) {
    }
    EXPECT_EQ(reports, 1) << "second " << second;
  }
}

/// It has reported that it wants a batch; the coordinator knows whether there is one.
TEST_F(WorkerOfASite, ReportsNothingMoreWhileItHasNoBatch) {
  begin({"strategy.name=easgd", "strategy.tau=10", "cluster.servers=1"});
  int reports = 0;
  while (heard([&](const WorkerProgress&) { ++reports; })) {
  }
  EXPECT_GE(reports, 1);
  pass(5s);
  EXPECT_FALSE(heard([](const WorkerProgress&) {}));
}

}  // namespace
}  // namespace troupe::actors
