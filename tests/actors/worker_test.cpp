// A worker alone, among members that say nothing: what it answers when news and orders cross.
#include "actors/worker.hpp"

#include "tests/actors/lone_worker.hpp"

namespace troupe::actors {
namespace {

class WorkerOf : public testing::TestWithParam<const char*> {
 protected:
  LoneWorker worker_{{std::string("strategy.name=") + GetParam()}};
};

// The coordinator, which has waited until all had settled down, may hear of a loss before it asks for states.
TEST_P(WorkerOf, SaysItsStateAfterNewsThatCameWhenItHadSettledDown) {
  worker_.begin();
  worker_.self->request(worker_.actor, LoneWorker::kPatience, SettleOrder{})
      .receive([](const Settled&) {}, LoneWorker::failed());
  worker_.self->send(worker_.actor, MembershipNews{1, {0}});
  worker_.self->request(worker_.actor, LoneWorker::kPatience, StateOrder{})
      .receive([](const MemberState& state) { EXPECT_NE(state.state, ""); }, LoneWorker::failed());
}

// Nobody tells its exchanger again.
TEST_P(WorkerOf, PassesEarlyNewsToItsExchanger) {
  worker_.self->send(worker_.actor, MembershipNews{1, {0}});
  worker_.begin();
  bool passed = false;
  worker_.self->receive([&](const MembershipNews& news) { passed = news.epoch == 1; },
                        caf::after(LoneWorker::kPatience) >> [] {});
  EXPECT_TRUE(passed);
}

// A worker elsewhere may be asked before it has heard of the company: it is no reason to lose it.
TEST_P(WorkerOf, SettlesDownWhenItIsAskedBeforeItBegins) {
  auto settled = worker_.self->request(worker_.actor, LoneWorker::kPatience, SettleOrder{});
  worker_.begin();
  settled.receive([](const Settled&) {}, LoneWorker::failed());
}

INSTANTIATE_TEST_SUITE_P(, WorkerOf, testing::Values("easgd", "downpour", "ssp", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe::actors
