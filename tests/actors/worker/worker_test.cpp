// A real worker; all other members are the test, which answers nothing: how the worker answers when news and orders cross.
#include "actors/worker/worker.hpp"

#include "tests/actors/worker/lone_worker.hpp"

namespace troupe::actors {
namespace {

class WorkerOf : public ::testing::TestWithParam<const char*> {};

// The coordinator waits until all members have settled. It may then learn of a loss before it asks for their states.
TEST_P(WorkerOf, ReportsItsStateAfterNewsThatArrivedOnceSettled) {
  LoneWorker worker({std::string("strategy.name=") + GetParam()});
  worker.begin();
  worker.self->request(worker.actor, LoneWorker::kPatience, SettleOrder{})
      .receive([](const Settled&) {}, LoneWorker::failed());
  worker.self->send(worker.actor, MembershipNews{1, {0}});
  worker.self->request(worker.actor, LoneWorker::kPatience, StateOrder{})
      .receive([](const MemberState& state) { EXPECT_NE(state.state, ""); }, LoneWorker::failed());
}

// No other member informs the worker's exchanger of that news.
TEST_P(WorkerOf, PassesEarlyNewsToItsExchanger) {
  LoneWorker worker({std::string("strategy.name=") + GetParam()});
  worker.self->send(worker.actor, MembershipNews{1, {0}});
  worker.begin();
  bool passed = false;
  worker.self->receive([&](const MembershipNews& news) { passed = news.epoch == 1; },
                       caf::after(LoneWorker::kPatience) >> [] {});
  EXPECT_TRUE(passed);
}

// A worker at another site may be asked before it has received the actor directory. That is no reason to declare it lost.
TEST_P(WorkerOf, SettlesWhenItIsAskedBeforeItBegins) {
  LoneWorker worker({std::string("strategy.name=") + GetParam()});
  auto settled = worker.self->request(worker.actor, LoneWorker::kPatience, SettleOrder{});
  worker.begin();
  settled.receive([](const Settled&) {}, LoneWorker::failed());
}

// It has no progress to report.
TEST(Worker, FailedStartIsReportedAndNothingElse) {
  LoneWorker worker({"strategy.name=easgd"});
  worker.begin("no plan");
  bool said = false;
  worker.self->receive([](const WorkerProgress&) { ADD_FAILURE() << "it has done nothing"; },
                       [&](const RunError& run_error) { said = run_error.text.find("the run") != std::string::npos; },
                       caf::after(LoneWorker::kPatience) >> [] {});
  EXPECT_TRUE(said);
}

INSTANTIATE_TEST_SUITE_P(, WorkerOf, ::testing::Values("easgd", "downpour", "ssp", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe::actors
