// Which messages members in other processes may send to the coordinator and the recorder, and on behalf of which members.
#include "actors/protocol/member_message_checks.hpp"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "actors/protocol/journal_batch.hpp"
#include "strategies/host/accounts.hpp"

namespace troupe::actors {
namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();

caf::node_id node(std::uint32_t number) {
  return caf::make_node_id(number, caf::node_id::default_data::host_id_type{1, 2, 3});
}
const Sender kFirst{false, node(1)}, kSecond{false, node(2)}, kPending{false, node(9)}, kHere{};

/// Workers 0 and 1 are at sites 1 and 2 of the first process, worker 2 and shard 1 at site 3 of the second; worker 3 is in this process.
MemberMessageChecks checks() {
  const auto nodes = std::make_shared<SiteNodes>();
  nodes->set(1, node(1));
  nodes->set(2, node(1));
  nodes->set(3, node(2));
  MemberMessageChecks checks({.workers = 4,
                              .servers = 2,
                              .worker_sites = {1, 2, 3, 4},
                              .server_sites = {0, 3},
                              .nodes = nodes,
                              .most_leases = 10,
                              .most_samples = 20});
  checks.granted(1, 50);
  return checks;
}

WorkerProgress progress() {
  WorkerProgress progress{.worker = 1,
                          .steps = 40,
                          .samples = 800,
                          .loss = 0.5,
                          .loss_sum = 10,
                          .top1 = 15,
                          .recent_samples = 20,
                          .compute_s = 3};
  progress.staleness.resize(strategies::StalenessHistogram{}.counts().size(), 2);
  progress.waits.assign(6, 0.25);
  progress.done = {1, 2, 3};
  progress.bytes = 30;
  progress.traffic = {{experiment::Purpose::push, 1, 20}, {experiment::Purpose::peer, 3, 10}};
  return progress;
}

/// Of two workers: more than they send, and less than fills a disk. Troupe's own notes are counted apart.
TEST(MemberMessageChecks, LinesOfProgramsAreAcceptedAsFastAsTheyMayBePrinted) {
  auto checked = checks();
  const Note line{.level = Note::Level::info, .text = "worker 1: loss 0.1", .of_program = true};
  constexpr auto kAtOnce = static_cast<int>(4 * kProgramLinesAtOnce);
  int accepted = 0;
  for (int k = 0; k < 2 * kAtOnce; ++k) accepted += checked.check(kFirst, line, {}) ? 0 : 1;
  EXPECT_EQ(accepted, kAtOnce);
  EXPECT_EQ(checked.check(kFirst, Note{Note::Level::warning, "one of Troupe's"}, {}), std::nullopt);
  EXPECT_EQ(
      checked.check(kSecond, Note{.level = Note::Level::info, .text = "worker 2: loss 0.1", .of_program = true}, {}),
      std::nullopt);
  EXPECT_EQ(checked.check(kFirst, line, std::chrono::seconds(2)), std::nullopt);
  EXPECT_NE(checked.check(kPending, line, {}), std::nullopt);
  for (int k = 1; k < static_cast<int>(MemberMessageChecks::kNotesAtOnce); ++k)
    ASSERT_EQ(checked.check(kFirst, Note{Note::Level::info, "a note"}, {}), std::nullopt) << k;
  EXPECT_NE(checked.check(kFirst, Note{Note::Level::info, "a note"}, {}), std::nullopt);
  // A run of weeks has more of them than are accepted at once.
  for (int k = 1; k < 5000; ++k)
    ASSERT_EQ(checked.check(kFirst, Note{Note::Level::info, "a note"}, std::chrono::seconds(2 * k)), std::nullopt);
}

TEST(MemberMessageChecks, MembersOfTheCoordinatorsProcessAreTrusted) {
  EXPECT_EQ(checks().check(kHere, LeaseRequest{77, 1'000'000}, 5), std::nullopt);
  EXPECT_EQ(checks().check(kHere, WorkerProgress{.worker = 77}, {}), std::nullopt);
  EXPECT_EQ(checks().check(kHere, SiteLost{7, 8, ""}), std::nullopt);
}

TEST(MemberMessageChecks, ReportsForWorkersOfAnotherProcessAreRefused) {
  for (const std::uint32_t worker : {0U, 1U}) {
    EXPECT_EQ(checks().check(kFirst, LeaseRequest{worker, 1}, 0), std::nullopt);
    EXPECT_NE(checks().check(kSecond, LeaseRequest{worker, 1}, 0), std::nullopt);
    EXPECT_NE(checks().check(kPending, LeaseRequest{worker, 1}, 0), std::nullopt);
  }
  for (const std::uint32_t worker : {3U, 4U, ~0U})
    EXPECT_NE(checks().check(kFirst, LeaseRequest{worker, 1}, 0), std::nullopt);
  EXPECT_NE(MemberMessageChecks{}.check(kFirst, LeaseRequest{0, 1}, 0),
            std::nullopt);  // all members are in this process
  EXPECT_EQ(checks().workers_of(kFirst), (std::vector<std::uint32_t>{0, 1}));
}

TEST(MemberMessageChecks, OnlyTheNewcomersProcessMayReportForIt) {
  auto all = checks();
  all.site_replaced(3, node(9));
  EXPECT_EQ(all.check(kPending, LeaseRequest{2, 1}, 0), std::nullopt);
  EXPECT_NE(all.check(kSecond, LeaseRequest{2, 1}, 0), std::nullopt);
}

TEST(MemberMessageChecks, RequestsForMoreLeasesThanALoaderHoldsAreRefused) {
  EXPECT_EQ(checks().check(kFirst, LeaseRequest{1, 10}, 0), std::nullopt);
  EXPECT_NE(checks().check(kFirst, LeaseRequest{1, 11}, 0), std::nullopt);
  EXPECT_NE(checks().check(kFirst, LeaseRequest{1, 1}, 10), std::nullopt);
  EXPECT_NE(checks().check(kFirst, LeaseRequest{1, ~0U}, 10), std::nullopt);
}

TEST(MemberMessageChecks, ProgressThatDiffersInOneFieldIsRefused) {
  EXPECT_EQ(checks().check(kFirst, progress(), {}), std::nullopt);
  EXPECT_NE(checks().check(kSecond, progress(), {}), std::nullopt);
  const std::vector<std::pair<const char*, std::function<void(WorkerProgress&)>>> lies{
      {"another worker", [](auto& p) { p.worker = 2; }},
      {"no worker", [](auto& p) { p.worker = 4; }},
      {"more steps than leases", [](auto& p) { p.steps = 51; }},
      {"more leases than there were", [](auto& p) { p.done.resize(51); }},
      {"more leases than there were, given up", [](auto& p) { p.given_up.resize(48); }},
      {"bytes that are not all of its rows", [](auto& p) { p.bytes = 31; }},
      {"bytes with no server", [](auto& p) { p.traffic[0].member = 2; }},
      {"bytes with no worker", [](auto& p) { p.traffic[1].member = 4; }},
      {"a row twice",
       [](auto& p) {
         p.traffic = {{p.traffic[0]}, {p.traffic[0]}}, p.bytes = 40;
       }},
      {"a purpose that there is none of", [](auto& p) { p.traffic[1].purpose = static_cast<experiment::Purpose>(5); }},
      {"a distance that is no number", [](auto& p) { p.distance = kNan; }},
      {"a distance below zero", [](auto& p) { p.distance = -2; }},
      {"samples beyond all", [](auto& p) { p.samples = ~std::uint64_t{0}; }},
      {"more samples than its leases have", [](auto& p) { p.samples = 1'001; }},
      {"bytes beyond all", [](auto& p) { p.bytes = ~std::uint64_t{0}; }},
      {"more right than seen", [](auto& p) { p.top1 = 21; }},
      {"fewer right than not known", [](auto& p) { p.top1 = -2; }},
      {"more lately than ever", [](auto& p) { p.recent_samples = 801; }},
      {"a loss that is no number", [](auto& p) { p.loss = kNan; }},
      {"a sum that is no number", [](auto& p) { p.loss_sum = -std::numeric_limits<double>::infinity(); }},
      {"a time that is no number", [](auto& p) { p.wait_s = kNan; }},
      {"a time beyond all", [](auto& p) { p.compute_s = 1e300; }},
      {"too many waits", [](auto& p) { p.waits.resize(1'000); }},
      {"too few waits", [](auto& p) { p.waits.resize(5); }},
      {"a wait that is no number", [](auto& p) { p.waits[3] = kNan; }},
      {"too many bins", [](auto& p) { p.staleness.resize(1'000); }},
      {"a bin beyond all", [](auto& p) { p.staleness[0] = ~std::uint64_t{0}; }},
  };
  for (const auto& [what, lie] : lies) {
    auto changed = progress();
    lie(changed);
    EXPECT_NE(checks().check(kFirst, changed, {}), std::nullopt) << what;
  }
}

TEST(MemberMessageChecks, ReportsThatGoBackOrRepeatAreRefused) {
  auto all = checks();
  EXPECT_EQ(all.check(kFirst, progress(), {}), std::nullopt);
  auto fewer = progress();
  fewer.steps = 39;
  EXPECT_NE(all.check(kFirst, fewer, {}), std::nullopt);
  auto more_leases = progress();
  more_leases.done.resize(48);  // 3 of 50 are done already
  EXPECT_NE(all.check(kFirst, more_leases, {}), std::nullopt);
  auto same = progress();
  same.done.clear();
  std::size_t heard = 0;
  while (heard < 1000 && !all.check(kFirst, same, {})) ++heard;
  EXPECT_EQ(heard, static_cast<std::size_t>(MemberMessageChecks::kRepeatsAtOnce));
  same.steps = 41;
  EXPECT_EQ(all.check(kFirst, same, {}), std::nullopt);
  all.site_replaced(2, node(1));  // a newcomer counts from 0
  EXPECT_NE(all.check(kFirst, same, {}), std::nullopt);
  all.granted(1, 5);
  same.steps = 3;
  same.samples = same.recent_samples = 0;
  same.top1 = -1;  // a program does not say
  EXPECT_EQ(all.check(kFirst, same, {}), std::nullopt);
}

/// As long as an evaluation takes, or a slow exchange: it reports every second.
TEST(MemberMessageChecks, AWorkerMayWaitForHours) {
  auto all = checks();
  auto same = progress();
  ASSERT_EQ(all.check(kFirst, same, {}), std::nullopt);
  same.done.clear();
  for (int second = 1; second < 3600; ++second)
    ASSERT_EQ(all.check(kFirst, same, std::chrono::seconds(second)), std::nullopt) << second;
  // The coordinator's process stood still for a minute: its reports are heard together.
  for (int k = 0; k < 60; ++k) ASSERT_EQ(all.check(kFirst, same, std::chrono::seconds(3660)), std::nullopt) << k;
}

TEST(MemberMessageChecks, ImpossibleMemberStateIsRefused) {
  EXPECT_TRUE(checks().may_have(1, 50));
  EXPECT_FALSE(checks().may_have(1, 51));
  EXPECT_FALSE(checks().may_have(0, ~std::uint64_t{0}));
  const MemberState state{"text", 0, {{1, 0.5}}, {strategies::staged(64)}};
  EXPECT_EQ(MemberMessageChecks::check(state, 4), std::nullopt);
  auto slots = state, from = state, weight = state;
  slots.peer_message_slots.clear();
  from.peer_messages[0].from = 4;
  weight.peer_messages[0].weight = kNan;
  for (const auto& lie : {slots, from, weight}) EXPECT_NE(MemberMessageChecks::check(lie, 4), std::nullopt);
}

TEST(MemberMessageChecks, ReportsForOtherSitesAreRefused) {
  EXPECT_EQ(checks().check(kFirst, RunError{core::Errc::timeout, "late", 2}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, RunError{core::Errc::timeout, "late", 3}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, RunError{core::Errc::timeout, "late", 0}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, RunError{static_cast<core::Errc>(99), "late", 2}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, RunError{static_cast<core::Errc>(-1), "late", 2}), std::nullopt);
  EXPECT_EQ(checks().check(kFirst, SiteLost{1, 3, "gone"}), std::nullopt);
  EXPECT_EQ(checks().check(kFirst, SiteLost{1, 0, "gone"}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, SiteLost{3, 1, "gone"}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, SiteLost{1, 1, "gone"}), std::nullopt);
  EXPECT_NE(checks().check(kFirst, SiteLost{1, 99, "gone"}), std::nullopt);
}

JournalRecords records(const std::function<void(JournalBatch&)>& fill) {
  JournalBatch batch;
  fill(batch);
  return batch.take();
}

TEST(MemberMessageChecks, ForeignAndTruncatedJournalRecordsAreRefused) {
  const auto own = records([](JournalBatch& batch) {
    batch.add(strategies::WorkerId{1}, strategies::WorkerEvent{strategies::Started{3}});
    batch.add(encode(SnapshotRecord{false, 0, strategies::kParams, 5}));
  });
  EXPECT_EQ(checks().check(kFirst, own), std::nullopt);
  EXPECT_NE(checks().check(kSecond, own), std::nullopt);
  const auto server = records([](JournalBatch& batch) {
    batch.add(strategies::ShardId{1}, strategies::ServerEvent{strategies::Request{.id = 1, .worker = 0}});
    batch.add(encode(SnapshotRecord{true, 1, strategies::kCenter, 5}));
  });
  EXPECT_EQ(checks().check(kSecond, server), std::nullopt);
  EXPECT_NE(checks().check(kFirst, server), std::nullopt);
  for (const auto& record : {encode(PlanRecord{3}), encode(LeaseGranted{1, {}}), encode(experiment::AbsentRecord{1}),
                             encode(experiment::EndRecord{})})
    EXPECT_NE(checks().check(kFirst, records([&](JournalBatch& batch) { batch.add(record); })), std::nullopt);
}

TEST(MemberMessageChecks, JournalRecordsThatDoNotAddUpAreRefused) {
  const auto own = records(
      [](JournalBatch& batch) { batch.add(strategies::WorkerId{1}, strategies::WorkerEvent{strategies::Started{3}}); });
  const std::vector<std::pair<const char*, std::function<void(JournalRecords&)>>> lies{
      {"a size beyond the bytes", [](auto& r) { r.sizes[0] += 1; }},
      {"the largest size", [](auto& r) { r.sizes[0] = ~0U; }},
      {"bytes that nobody has", [](auto& r) { r.bytes.push_back('x'); }},
      {"no size", [](auto& r) { r.sizes.clear(); }},
      {"a size of nothing", [](auto& r) { r.sizes.push_back(0); }},
      {"no bytes", [](auto& r) { r.bytes.clear(); }},
      {"a kind that there is not", [](auto& r) { r.kinds[0] = 0x7777; }},
  };
  for (const auto& [what, lie] : lies) {
    auto changed = own;
    lie(changed);
    EXPECT_NE(checks().check(kFirst, changed), std::nullopt) << what;
  }
}

TEST(RefusalCount, ReportsTheFirstTheSecondTheFourthAndThenFewer) {
  RefusalCount count;
  std::vector<std::size_t> said;
  for (std::size_t k = 1; k <= 1000; ++k) {
    if (count.add("site 1", "a\nb")) said.push_back(k);
    EXPECT_EQ(count.enough("site 1"), k % RefusalCount::kMost == 0);
  }
  EXPECT_EQ(said, (std::vector<std::size_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(count.add("site 2", "a\nb"), "a message from site 2 was refused: a b");
  EXPECT_FALSE(count.enough("site 3"));
  for (std::size_t k = 0; k < 100'000; ++k) (void)count.add(std::to_string(k), "");  // the number of names is limited
}

TEST(RefusalCount, TextsOfPeersAreShownInOneShortLine) {
  EXPECT_EQ(one_line("a\x1b[2J\nb\t\x7f"
                     "c"),
            "a [2J b  c");
  EXPECT_EQ(one_line(std::string(1'000'000, 'x')).size(), 2000U);
}

}  // namespace
}  // namespace troupe::actors
