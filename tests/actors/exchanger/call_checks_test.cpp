// Which calls of other sites are accepted: every call that a member makes, and none that differs from it in one field.
#include "actors/exchanger/call_checks.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "nn/checkpoint/own_state.hpp"

namespace troupe::actors {
namespace {

using exchange::Lend;
using strategies::Transfer;

constexpr std::size_t kArena = 1000;
constexpr std::size_t kStatistics = 30;
constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInfinite = std::numeric_limits<double>::infinity();

/// Site 0 has the coordinator and shard 0, site 1 worker 0 and shard 1, site 2 worker 1, site 3 worker 2. These are the checks of site 1.
CallChecks checks(bool peer_messages = true, std::shared_ptr<const exchange::Packing> packing = {}) {
  return CallChecks({1, {1, 2, 3}, {0, 1}}, {std::move(packing), kArena, kStatistics, 3, peer_messages});
}
exchange::Rpc::Incoming call(Lend lend, std::size_t floats) {
  static std::vector<float> memory(2 * kArena);
  return {.from = {}, .header = {}, .lend = lend, .vector = core::Span(memory).first(floats), .reply = {}};
}
std::size_t shard_floats(std::size_t shard) { return core::slice_of(kArena, shard, 2).count; }

ShardMessage push() {
  return {1, {.worker = 1, .exchange = 4, .kind = Transfer::push, .clock = 7, .version = 9, .epoch = 1.5, .lr = 0.1F}};
}

TEST(CallChecks, ValidRequestsOfAWorkerAreAccepted) {
  auto all = checks();
  for (const auto& [kind, lend] :
       {std::pair{Transfer::push, Lend::read}, {Transfer::pull, Lend::write}, {Transfer::push_pull, Lend::both}}) {
    auto message = push();
    message.request.kind = kind;
    EXPECT_EQ(all.check(2, message, call(lend, shard_floats(1))), std::nullopt);
  }
}

TEST(CallChecks, ARequestThatDiffersInOneFieldIsRefused) {
  const std::vector<std::pair<const char*, std::function<void(ShardMessage&)>>> lies{
      {"another site's worker", [](auto& m) { m.request.worker = 2; }},
      {"a worker of this site", [](auto& m) { m.request.worker = 0; }},
      {"a worker that is none", [](auto& m) { m.request.worker = 3; }},
      {"the last worker there could be", [](auto& m) { m.request.worker = ~0U; }},
      {"a shard of another site", [](auto& m) { m.shard = 0; }},
      {"a shard that is none", [](auto& m) { m.shard = 2; }},
      {"another kind than its vector's", [](auto& m) { m.request.kind = Transfer::pull; }},
      {"no kind", [](auto& m) { m.request.kind = static_cast<Transfer>(17); }},
      {"an exchange beyond all", [](auto& m) { m.request.exchange = ~std::uint64_t{0}; }},
      {"a clock beyond all", [](auto& m) { m.request.clock = ~std::uint64_t{0}; }},
      {"an epoch that is no number", [](auto& m) { m.request.epoch = kNan; }},
      {"an epoch without end", [](auto& m) { m.request.epoch = kInfinite; }},
      {"an epoch before the run", [](auto& m) { m.request.epoch = -1; }},
      {"an epoch after the run", [](auto& m) { m.request.epoch = 100; }},
      {"a rate that is no number", [](auto& m) { m.request.lr = std::nanf(""); }},
      {"a rate without end", [](auto& m) { m.request.lr = std::numeric_limits<float>::infinity(); }},
      {"a rate that climbs", [](auto& m) { m.request.lr = -1; }},
  };
  for (const auto& [what, lie] : lies) {
    auto message = push();
    lie(message);
    auto all = checks();
    EXPECT_NE(all.check(2, message, call(Lend::read, shard_floats(1))), std::nullopt) << what;
  }
  for (const std::size_t floats : {std::size_t{0}, shard_floats(1) - 1, shard_floats(1) + 1, kArena})
    EXPECT_NE(checks().check(2, push(), call(Lend::read, floats)), std::nullopt) << floats;
  EXPECT_NE(checks().check(3, push(), call(Lend::read, shard_floats(1))), std::nullopt);
  EXPECT_NE(checks().check(0, push(), call(Lend::read, shard_floats(1))), std::nullopt);
}

TEST(CallChecks, ClockThatGoesBackIsRefused) {
  auto all = checks();
  auto message = push();
  EXPECT_EQ(all.check(2, message, call(Lend::read, shard_floats(1))), std::nullopt);
  EXPECT_EQ(all.check(2, message, call(Lend::read, shard_floats(1))), std::nullopt);
  message.request.clock = 6;
  EXPECT_NE(all.check(2, message, call(Lend::read, shard_floats(1))), std::nullopt);
  all.forget(1);  // lost: the worker that replaces it begins anew
  EXPECT_EQ(all.check(2, message, call(Lend::read, shard_floats(1))), std::nullopt);
}

/// They pass through different proxies, one of which may be slower.
TEST(CallChecks, RequestsToDifferentShardsHaveNoOrder) {
  CallChecks all({1, {1, 2, 3}, {1, 1}}, {{}, kArena, kStatistics, 3, true});
  auto later = push();
  auto earlier = later;
  earlier.shard = 0;
  --earlier.request.clock;
  EXPECT_EQ(all.check(2, later, call(Lend::read, shard_floats(1))), std::nullopt);
  EXPECT_EQ(all.check(2, earlier, call(Lend::read, shard_floats(0))), std::nullopt);
  earlier.shard = 1;
  EXPECT_NE(all.check(2, earlier, call(Lend::read, shard_floats(1))), std::nullopt);
  all.forget(1);
  EXPECT_EQ(all.check(2, earlier, call(Lend::read, shard_floats(1))), std::nullopt);
}

TEST(CallChecks, VectorsOfAnotherLengthAreRefused) {
  std::vector<float> marks(kArena, 1);
  for (std::size_t i = kArena / 2; i < kArena / 2 + 10; ++i) marks[i] = 0;  // padding
  const auto packed = checks(true, std::make_shared<const exchange::Packing>(marks));
  const OutgoingPeerMessage peer_message{0, {1, 0.25}};
  EXPECT_EQ(packed.check(2, peer_message, call(Lend::read, kArena - 10)), std::nullopt);
  EXPECT_NE(packed.check(2, peer_message, call(Lend::read, kArena)), std::nullopt);
}

TEST(CallChecks, APeerMessageThatDiffersInOneFieldIsRefused) {
  const OutgoingPeerMessage peer_message{0, {1, 0.25}};
  EXPECT_EQ(checks().check(2, peer_message, call(Lend::read, kArena)), std::nullopt);
  const std::vector<std::pair<const char*, std::function<void(OutgoingPeerMessage&)>>> lies{
      {"of another site's worker", [](auto& l) { l.peer_message.from = 2; }},
      {"of nobody", [](auto& l) { l.peer_message.from = 1'000'000; }},
      {"to another site's worker", [](auto& l) { l.to = 2; }},
      {"to nobody", [](auto& l) { l.to = 3; }},
      {"a weight below nothing", [](auto& l) { l.peer_message.weight = -0.5; }},
      {"more than all", [](auto& l) { l.peer_message.weight = 2000; }},
      {"a weight that is no number", [](auto& l) { l.peer_message.weight = kNan; }},
  };
  for (const auto& [what, lie] : lies) {
    auto changed = peer_message;
    lie(changed);
    EXPECT_NE(checks().check(2, changed, call(Lend::read, kArena)), std::nullopt) << what;
  }
  EXPECT_NE(checks().check(2, peer_message, call(Lend::read, kArena - 1)), std::nullopt);
  EXPECT_NE(checks().check(2, peer_message, call(Lend::both, kArena)), std::nullopt);
  EXPECT_NE(checks(false).check(2, peer_message, call(Lend::read, kArena)),
            std::nullopt);  // a run without peer messages
}

TEST(CallChecks, OnlyTheCoordinatorTakesSnapshotsAndOnlyOfLocalMembers) {
  const MemberSnapshot worker{false, 0, {1, strategies::kParams}}, server{true, 1, {2, strategies::kCenter}},
      statistics{false, 0, {3, strategies::kStatistics}};
  EXPECT_EQ(checks().check(0, worker, call(Lend::write, kArena)), std::nullopt);
  EXPECT_EQ(checks().check(0, server, call(Lend::write, shard_floats(1))), std::nullopt);
  EXPECT_EQ(checks().check(0, statistics, call(Lend::write, kStatistics)), std::nullopt);
  for (const std::uint32_t from : {1U, 2U, 3U})
    EXPECT_NE(checks().check(from, worker, call(Lend::write, kArena)), std::nullopt) << from;
  EXPECT_NE(checks().check(0, statistics, call(Lend::write, kArena)), std::nullopt);
  EXPECT_NE(checks().check(0, worker, call(Lend::both, kArena)), std::nullopt);
  EXPECT_NE(checks().check(0, MemberSnapshot{false, 1, {1, strategies::kParams}}, call(Lend::write, kArena)),
            std::nullopt);
  EXPECT_NE(checks().check(0, MemberSnapshot{true, 0, {1, strategies::kCenter}}, call(Lend::write, shard_floats(0))),
            std::nullopt);
  EXPECT_NE(checks().check(0, MemberSnapshot{true, 99, {1, strategies::kCenter}}, call(Lend::write, 0)), std::nullopt);
}

TEST(CallChecks, AnAnswerMustMatchItsRequest) {
  const auto message = push();
  const ShardAnswer answer{{.request = 1, .worker = 1, .shard = 1, .exchange = 4, .version = 10, .staleness = 2}, {}};
  EXPECT_EQ(checks().check(message, answer), std::nullopt);
  const std::vector<std::pair<const char*, std::function<void(strategies::ShardReply&)>>> lies{
      {"another worker's", [](auto& r) { r.worker = 0; }},
      {"another shard's", [](auto& r) { r.shard = 0; }},
      {"another exchange's", [](auto& r) { r.exchange = 5; }},
      {"staler than old", [](auto& r) { r.staleness = 11; }},
      {"a version beyond all", [](auto& r) { r.version = ~std::uint64_t{0}; }},
      {"negative waiting time", [](auto& r) { r.held = core::Duration{-1}; }},
      {"waited for nobody", [](auto& r) { r.last = 3; }},
  };
  for (const auto& [what, lie] : lies) {
    auto changed = answer;
    lie(changed.reply);
    EXPECT_NE(checks().check(message, changed), std::nullopt) << what;
  }
  const MemberSnapshot snapshot{false, 0, {7, strategies::kParams}};
  EXPECT_EQ(checks().check(snapshot, SnapshotTaken{7, 1, 2, 0.5}), std::nullopt);
  EXPECT_NE(checks().check(snapshot, SnapshotTaken{8, 1, 2, 0.5}), std::nullopt);
  EXPECT_NE(checks().check(snapshot, SnapshotTaken{7, 1, 2, kNan}), std::nullopt);
  EXPECT_NE(checks().check(snapshot, SnapshotTaken{7, 1, ~std::uint64_t{0}, 1}), std::nullopt);
}

TEST(CallChecks, AnOptimizersStateComesInPiecesOfAWorkersArena) {
  const MemberSnapshot snapshot{false, 0, {.id = 7, .slot = {}, .journalled = false, .own_state = true, .offset = 5}};
  EXPECT_EQ(checks().check(0, snapshot, call(Lend::write, kArena)), std::nullopt);
  EXPECT_NE(checks().check(0, snapshot, call(Lend::write, kArena - 1)), std::nullopt);
  EXPECT_EQ(checks().position_of(snapshot), std::nullopt) << "bytes are not packed";
  auto of_server = snapshot;
  of_server.server = true;
  of_server.member = 1;
  EXPECT_NE(checks().check(0, of_server, call(Lend::write, checks().floats_of(of_server))), std::nullopt);
  SnapshotTaken taken{.id = 7, .bytes = nn::most_own_state(kArena)};
  EXPECT_EQ(checks().check(snapshot, taken), std::nullopt);
  ++taken.bytes;
  EXPECT_NE(checks().check(snapshot, taken), std::nullopt);
  EXPECT_NE(checks().check(MemberSnapshot{false, 0, {7, strategies::kParams}}, SnapshotTaken{.id = 7, .bytes = 1}),
            std::nullopt);
}

}  // namespace
}  // namespace troupe::actors
