// A worker alone, among members that say nothing: what it answers when news and orders cross.
#include "actors/worker.hpp"

#include <gtest/gtest.h>

#include "actors/system.hpp"
#include "experiment/blueprint.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/start_state.hpp"
#include "strategies/host/worker_host.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::seconds kPatience{60};

class LoneWorker : public testing::TestWithParam<const char*> {
 protected:
  LoneWorker() : run_({std::string("strategy.name=") + GetParam()}), plan_(*experiment::draw(*run_.settings(), true)) {
    worker_ = system_.spawn<caf::detached>(
        worker, WorkerSetup{.workers = plan_.workers,
                            .graph = plan_.graph,
                            .backend = &tests::backend(),
                            .compile = {.batch = plan_.settings->batch(0), .threads = 1, .seed = 1, .arenas = &memory_},
                            .plan = {},
                            .strategy = plan_.strategy,
                            .train = plan_.settings->train,
                            .servers = plan_.servers,
                            .clock = &clock_});
  }
  ~LoneWorker() override {
    self_->send(worker_, Halt{});
    self_->wait_for(worker_);
  }
  /// Sends it what everyone is told at the start: the others are this test, which answers nothing.
  void begin() {
    self_->request(worker_, kPatience, Prepare{})
        .receive([](const Prepared& prepared, const ReplicaFacts&) { EXPECT_EQ(prepared.error, ""); }, failed());
    self_
        ->request(worker_, kPatience,
                  ReplicaStart{std::make_shared<const StartState>(experiment::start_state(plan_, nullptr))})
        .receive([](const ReplicaLoaded&) {}, failed());
    Company company;
    company.coordinator = caf::actor_cast<CoordinatorActor>(self_);
    company.recorder = caf::actor_cast<RecorderActor>(self_);
    company.workers = {worker_, caf::actor_cast<WorkerActor>(self_)};
    company.loaders.assign(2, caf::actor_cast<LoaderActor>(self_));
    company.servers.assign(plan_.servers, caf::actor_cast<ServerActor>(self_));
    company.worker_sites = {0, 0};
    company.exchanger = caf::actor_cast<ExchangerActor>(self_);
    company.exchange = experiment::to_json(experiment::ExchangePlan{});
    self_->send(worker_, company);
  }
  static std::function<void(const caf::error&)> failed() {
    return [](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); };
  }

  tests::SmallRun run_;
  experiment::Blueprint plan_;
  core::SteadyClock clock_;
  core::HostAllocator memory_;
  SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  WorkerActor worker_;
};

// The coordinator, which has waited until all had settled down, may hear of a loss before it asks for states.
TEST_P(LoneWorker, SaysItsStateAfterNewsThatCameWhenItHadSettledDown) {
  begin();
  self_->request(worker_, kPatience, SettleOrder{}).receive([](const Settled&) {}, failed());
  self_->send(worker_, MembershipNews{1, {0}});
  self_->request(worker_, kPatience, StateOrder{})
      .receive([](const MemberState& state) { EXPECT_NE(state.state, ""); }, failed());
}

// Nobody tells its exchanger again.
TEST_P(LoneWorker, PassesEarlyNewsToItsExchanger) {
  self_->send(worker_, MembershipNews{1, {0}});
  begin();
  bool passed = false;
  self_->receive([&](const MembershipNews& news) { passed = news.epoch == 1; }, caf::after(kPatience) >> [] {});
  EXPECT_TRUE(passed);
}

// A worker elsewhere may be asked before it has heard of the company: it is no reason to lose it.
TEST_P(LoneWorker, SettlesDownWhenItIsAskedBeforeItBegins) {
  auto settled = self_->request(worker_, kPatience, SettleOrder{});
  begin();
  settled.receive([](const Settled&) {}, failed());
}

INSTANTIATE_TEST_SUITE_P(, LoneWorker, testing::Values("easgd", "downpour", "ssp", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe::actors
