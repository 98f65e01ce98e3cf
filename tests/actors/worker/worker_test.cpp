// A worker alone, among members that say nothing: what it answers when news and orders cross.
#include "actors/worker/worker.hpp"

#include "tests/actors/worker/lone_worker.hpp"

namespace troupe::actors {
namespace {

class WorkerOf : public testing::TestWithParam<const char*> {};

// The coordinator, which has waited until all had settled down, may hear of a loss before it asks for states.
TEST_P(WorkerOf, SaysItsStateAfterNewsThatCameWhenItHadSettledDown) {
  LoneWorker worker({std::string("strategy.name=") + GetParam()});
  worker.begin();
  worker.self->request(worker.actor, LoneWorker::kPatience, SettleOrder{})
      .receive([](const Settled&) {}, LoneWorker::failed());
  worker.self->send(worker.actor, MembershipNews{1, {0}});
  worker.self->request(worker.actor, LoneWorker::kPatience, StateOrder{})
      .receive([](const MemberState& state) { EXPECT_NE(state.state, ""); }, LoneWorker::failed());
}

// Nobody tells its exchanger again.
TEST_P(WorkerOf, PassesEarlyNewsToItsExchanger) {
  LoneWorker worker({std::string("strategy.name=") + GetParam()});
  worker.self->send(worker.actor, MembershipNews{1, {0}});
  worker.begin();
  bool passed = false;
  worker.self->receive([&](const MembershipNews& news) { passed = news.epoch == 1; },
                       caf::after(LoneWorker::kPatience) >> [] {});
  EXPECT_TRUE(passed);
}

// A worker elsewhere may be asked before it has heard of the company: it is no reason to lose it.
TEST_P(WorkerOf, SettlesDownWhenItIsAskedBeforeItBegins) {
  LoneWorker worker({std::string("strategy.name=") + GetParam()});
  auto settled = worker.self->request(worker.actor, LoneWorker::kPatience, SettleOrder{});
  worker.begin();
  settled.receive([](const Settled&) {}, LoneWorker::failed());
}

// It has no accounts yet.
TEST(Worker, ThatCannotBeginSaysWhyAndNothingElse) {
  LoneWorker worker({"strategy.name=easgd"});
  worker.begin("no plan");
  bool said = false;
  worker.self->receive([](const WorkerProgress&) { ADD_FAILURE() << "it has done nothing"; },
                       [&](const Trouble& trouble) { said = trouble.text.find("the company") != std::string::npos; },
                       caf::after(LoneWorker::kPatience) >> [] {});
  EXPECT_TRUE(said);
}

INSTANTIATE_TEST_SUITE_P(, WorkerOf, testing::Values("easgd", "downpour", "ssp", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe::actors
