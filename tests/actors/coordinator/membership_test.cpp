// What the recorder hears of members and of their samples.
#include <gtest/gtest.h>

#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Event = MemberReport::Event;

/// Two workers with easgd; they are at nodes if `nodes`.
class TwoWorkers : public LoneCoordinator {
 public:
  explicit TwoWorkers(const std::string& more = "run.epochs=2", std::vector<std::string> nodes = {},
                      std::vector<std::uint32_t> sites = {})
      : LoneCoordinator({"strategy.name=easgd", "cluster.workers=2", more}) {
    worker_sites = std::move(sites);
    begin([&](CoordinatorSetup& setup) { setup.nodes = std::move(nodes); });
    take_snapshots();
    auto first = order_to_write();
    write(first);
  }
  std::vector<MemberReport> members() {
    std::vector<MemberReport> found;
    while (heard(recorder, [&](const MemberReport& report) { found.push_back(report); })) {
    }
    return found;
  }
  std::optional<LedgerReport> ledger() {
    std::optional<LedgerReport> last;
    while (heard(recorder, [&](const LedgerReport& report) { last = report; })) {
    }
    return last;
  }
  void report(std::uint32_t worker, std::uint64_t steps, std::vector<std::uint64_t> done) {
    WorkerProgress progress{.worker = worker, .steps = steps, .samples = 20 * steps};
    progress.compute_s = 0.1 * static_cast<double>(steps);
    progress.done = std::move(done);
    tell(progress);
  }
};

TEST(Membership, NodesAreToldWhereTheRunBegins) {
  TwoWorkers run("run.epochs=2", {"h1:4242", "h2:4242"});
  const auto members = run.members();
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].event, Event::began);
  EXPECT_EQ(members[1].node, "h2:4242");
  EXPECT_TRUE(TwoWorkers().members().empty()) << "in one process there is nothing to say";
}

TEST(Membership, ALostWorkersSamplesAreInTheLedger) {
  TwoWorkers run;
  run.tell(LeaseRequest{1, 3});
  run.pass(1s);
  auto ledger = run.ledger();
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->size, 1200U);
  EXPECT_EQ(ledger->leased, 60U);
  run.report(1, 1, {0});
  run.workers[1].reset();
  run.run();
  const auto members = run.members();
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].event, Event::lost);
  EXPECT_EQ(members[0].worker, 1U);
  EXPECT_EQ(members[0].steps, 1U);
  EXPECT_EQ(members[0].members, 1U);
  EXPECT_FALSE(members[0].reason.empty());
  run.pass(1s);
  ledger = run.ledger();
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->done, 20U);
  EXPECT_EQ(ledger->useful, 20U);
  EXPECT_EQ(ledger->leased, 0U);
  EXPECT_EQ(ledger->free, 1180U);
  EXPECT_EQ(ledger->lost, 40U);
  EXPECT_EQ(ledger->returned, 40U);
  // 200 samples/s by both, who have been there for 1 and 2 s.
  EXPECT_NEAR(ledger->possible, 200 * (1 + 2), 1e-6);
  run.pass(5s);
  EXPECT_FALSE(run.ledger()) << "nothing has changed";
}

TEST(Membership, AWorkerThatStopsWhileTheOtherReportsIsSilentUntilItIsHeard) {
  TwoWorkers run;
  for (const auto worker : {0U, 1U}) run.tell(LeaseRequest{worker, 3});
  std::uint64_t steps = 0;
  for (int second = 0; second < 4; ++second, run.pass(1s))
    for (const auto worker : {0U, 1U}) run.report(worker, steps, {});
  EXPECT_TRUE(run.members().empty());
  for (int second = 0; second < 12; ++second) {
    run.report(0, steps, {});
    run.pass(1s);
  }
  auto members = run.members();
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].event, Event::silent);
  EXPECT_EQ(members[0].worker, 1U);
  run.report(1, steps, {});
  members = run.members();
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].event, Event::heard);
}

TEST(Membership, AWorkerThatHasFinishedItsLeasesIsNotSilentWhileTheOtherFinishes) {
  TwoWorkers run;
  for (const auto worker : {0U, 1U}) run.tell(LeaseRequest{worker, 3});
  for (int second = 0; second < 4; ++second, run.pass(1s))
    for (const auto worker : {0U, 1U}) run.report(worker, 0, {});
  run.report(1, 3, {3, 4, 5});
  for (int second = 0; second < 12; ++second) {
    run.report(0, 0, {});
    run.pass(1s);
  }
  EXPECT_TRUE(run.members().empty());
}

TEST(Membership, TheLedgerOfACheckpointIsToldBeforeIt) {
  TwoWorkers run("run.checkpoint_every=2 steps");
  run.tell(LeaseRequest{1, 3});  // two are granted: the checkpoint is due then
  run.report(1, 2, {0, 1});      // less than a second after the last line
  run.take_snapshots();
  auto writing = run.order_to_write();
  ASSERT_TRUE(writing);
  const auto ledger = run.ledger();
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->useful, 40U);
}

/// Two workers at sites 1 and 2.
class TwoSites : public TwoWorkers {
 public:
  static constexpr auto kClosedEndpoint = "peer tcp:127.0.0.1:1/site 2 is lost: it closed its endpoint";
  TwoSites() : TwoWorkers("run.epochs=2", {}, {1, 2}) {}
};

TEST(Membership, TheEndOfAnEndpointIsNotTheReasonWhereTheSiteTellsIt) {
  TwoSites run;
  run.tell(SiteLost{0, 2, TwoSites::kClosedEndpoint});
  EXPECT_TRUE(run.members().empty());
  run.tell(RunError{core::Errc::program, "worker 1, step 2: the program has failed: ValueError: boom", 2});
  const auto members = run.members();
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].event, Event::lost);
  EXPECT_EQ(members[0].reason, "worker 1, step 2: the program has failed: ValueError: boom");
  run.pass(5s);
  EXPECT_TRUE(run.members().empty());
}

TEST(Membership, TheEndOfAnEndpointIsTheReasonOfASiteThatTellsNone) {
  TwoSites run;
  run.tell(SiteLost{0, 2, TwoSites::kClosedEndpoint});
  run.pass(3s);
  const auto members = run.members();
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].worker, 1U);
  EXPECT_EQ(members[0].reason, "it closed its endpoint");
}

TEST(Membership, ALossThatEndsTheRunIsToldWithItsReason) {
  TwoWorkers run;
  run.workers[1].reset();
  run.run();
  static_cast<void>(run.members());
  run.workers[0].reset();
  run.run();
  const auto members = run.members();
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].event, Event::lost);
  EXPECT_EQ(members[0].worker, 0U);
  EXPECT_NE(members[0].reason.find("no worker is left"), std::string::npos) << members[0].reason;
}

}  // namespace
}  // namespace troupe::actors
