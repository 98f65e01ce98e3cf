// A site that sends arbitrary calls to site 0, which has the center. A call that no member makes is refused and counted; it reaches no
// server. The exchanges of other workers continue with unchanged numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "actors/exchanger/call_checks.hpp"
#include "actors/protocol/member_message_checks.hpp"
#include "tests/hostile/budget.hpp"
#include "tests/hostile/center.hpp"

namespace troupe::hostile {
namespace {

using actors::CallKind;
using exchange::Lend;
using strategies::Transfer;

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::string> kDownpour{"strategy.name=downpour"};

std::string refusal(Center& center, std::uint32_t from, const actors::ShardMessage& message, Lend lend = Lend::read,
                    std::optional<std::size_t> floats = {}) {
  std::vector<float> vector(floats.value_or(center.arena_floats()), 1);
  const auto answer = center.call(from, center.header(CallKind::shard, message), vector, lend);
  return answer ? "" : answer.error().message;
}

TEST(HostileCalls, ForeignFieldsAreRefusedAndChangeNothing) {
  Center center({.settings = kDownpour});
  center.push(0, 0.25F, 1);
  const auto before = center.pull(0);
  const auto lie = [](const auto& change) {
    auto message = Center::request(1, Transfer::push, 5);
    change(message);
    return message;
  };
  const std::vector<std::pair<const char*, actors::ShardMessage>> lies{
      {"as another worker", lie([](auto& m) { m.request.worker = 0; })},
      {"as nobody", lie([](auto& m) { m.request.worker = 77; })},
      {"to a shard that there is not", lie([](auto& m) { m.shard = 1; })},
      {"to the last shard there could be", lie([](auto& m) { m.shard = ~0U; })},
      {"from the future", lie([](auto& m) { m.request.version = 1'000; })},
      {"from the last version there could be", lie([](auto& m) { m.request.version = ~std::uint64_t{0}; })},
      {"of no kind", lie([](auto& m) { m.request.kind = static_cast<Transfer>(9); })},
      {"with an epoch that is no number", lie([](auto& m) { m.request.epoch = kNan; })},
      {"with a rate that climbs", lie([](auto& m) { m.request.lr = -1; })},
  };
  for (const auto& [what, message] : lies) EXPECT_NE(refusal(center, 2, message), "") << what;
  const auto honest = Center::request(1, Transfer::push, 5);
  EXPECT_NE(refusal(center, 2, honest, Lend::read, center.arena_floats() - 1), "");
  EXPECT_NE(refusal(center, 2, honest, Lend::read, 0), "");
  EXPECT_NE(refusal(center, 2, honest, Lend::nothing), "");
  EXPECT_NE(refusal(center, 2, honest, Lend::both), "");
  for (const std::string& header :
       {std::string(), std::string("\x09"), std::string(200, '\xff'), center.header(CallKind::shard, honest) + "x",
        center.header(CallKind::peer_message, honest)}) {
    std::vector<float> vector(center.arena_floats());
    EXPECT_FALSE(center.call(2, header, vector, Lend::read)) << header.size();
  }
  EXPECT_EQ(center.pull(0), before);
  EXPECT_TRUE(center.told().troubles.empty()) << center.told().troubles[0].text;
  EXPECT_TRUE(center.told().losses.empty());
  EXPECT_FALSE(center.told().notes.empty());
  EXPECT_EQ(refusal(center, 2, honest), "");  // it may still act as a member
  EXPECT_NE(center.pull(0), before);
}

TEST(HostileCalls, ARunningExchangeIsNotBegunAgain) {
  // The server holds a worker's part until all have arrived.
  Center center({.settings = {"strategy.name=sync_easgd"}});
  const auto message = Center::request(1, Transfer::push_pull, 3);
  center.call_on(2, center.header(CallKind::shard, message), std::vector<float>(center.arena_floats()), Lend::both);
  EXPECT_NE(refusal(center, 2, message, Lend::both).find("under way"), std::string::npos);
  EXPECT_TRUE(center.told().troubles.empty());
}

TEST(HostileCalls, PushesOfNonMembersAreRefused) {
  Center center({.settings = kDownpour, .members = {0}});
  const auto before = center.pull(0);
  EXPECT_NE(refusal(center, 2, Center::request(1, Transfer::push, 1)), "");
  EXPECT_EQ(center.pull(0), before);
}

TEST(HostileCalls, OnlyTheCoordinatorTakesSnapshots) {
  Center center({.settings = kDownpour});
  std::vector<float> space(center.arena_floats());
  for (const std::uint32_t member : {0U, 1U, 99U}) {
    const actors::MemberSnapshot snapshot{true, member, {1, strategies::kCenter}};
    EXPECT_FALSE(center.call(2, center.header(CallKind::snapshot, snapshot), space, Lend::write)) << member;
  }
}

TEST(HostileCalls, StartStateOfANewRunCannotBeFetched) {
  Center center({.settings = kDownpour});
  std::vector<float> space(100);
  EXPECT_FALSE(center.call(2, center.header(CallKind::start, std::uint64_t{0}), space, Lend::write));
  EXPECT_FALSE(center.call(2, center.header(CallKind::start, ~std::uint64_t{0}), space, Lend::write));
}

TEST(HostileCalls, PeerMessagesAreForRunsThatHaveThem) {
  Center center({.settings = kDownpour});
  std::vector<float> vector(center.arena_floats());
  EXPECT_FALSE(center.call(2, center.header(CallKind::peer_message, actors::OutgoingPeerMessage{0, {1, 0.5}}), vector,
                           Lend::read));
  EXPECT_FALSE(center.call(2, center.header(CallKind::peer_message, actors::OutgoingPeerMessage{0, {7, 0.5}}), vector,
                           Lend::read));
}

TEST(HostileCalls, APeerThatIsRefusedTooOftenIsLostAlone) {
  Center center({.settings = kDownpour});
  auto message = Center::request(1, Transfer::push, 1);
  message.request.worker = 0;
  for (std::uint64_t k = 0; k < actors::RefusalCount::kMost; ++k) EXPECT_NE(refusal(center, 2, message), "") << k;
  center.await([&] { return !center.told().losses.empty(); });
  EXPECT_EQ(center.told().losses[0].lost, 2U);
  EXPECT_TRUE(center.told().troubles.empty());
  EXPECT_LT(center.told().notes.size(), 20U);
  center.push(0, 1, 2);
}

// ---- arbitrary calls

/// A number that CAF can write: its serialiser does not terminate on infinity. Damaged bytes may contain infinity.
double sayable(Dice& dice) {
  const double value = dice.real();
  return std::isfinite(value) && std::abs(value) < 1e30 ? value : -1;
}

/// Changes one field, or several.
void mutate(Dice& dice, actors::ShardMessage& message) {
  auto& request = message.request;
  do {
    switch (dice.below(10)) {
      case 0: message.shard = dice.number<std::uint32_t>(); break;
      case 1: request.worker = dice.number<std::uint32_t>(); break;
      case 2: request.exchange = dice.number<std::uint64_t>(); break;
      case 3: request.kind = static_cast<Transfer>(dice.number<std::uint8_t>()); break;
      case 4: request.clock = dice.number<std::uint64_t>(); break;
      case 5: request.version = dice.number<std::uint64_t>(); break;
      case 6: request.epoch = sayable(dice); break;
      case 7: request.lr = static_cast<float>(sayable(dice)); break;
      case 8: request.id = dice.number<std::uint64_t>(); break;
      default: message.sent_ns = dice.number<std::int64_t>(); break;
    }
  } while (dice.one_in(3));
}

std::string some_header(Dice& dice, Center& center) {
  auto message = Center::request(1, static_cast<Transfer>(dice.below(3)), 1 + dice.below(1'000'000));
  std::string header;
  switch (dice.below(6)) {
    case 0: {
      const actors::OutgoingPeerMessage peer_message{dice.number<std::uint32_t>(),
                                                     {dice.number<std::uint32_t>(), sayable(dice)}};
      header = center.header(CallKind::peer_message, peer_message);
      break;
    }
    case 1: {
      const actors::MemberSnapshot snapshot{
          dice.one_in(2),
          dice.number<std::uint32_t>(),
          {dice.number<std::uint64_t>(),
           {static_cast<strategies::SlotKind>(dice.number<std::uint8_t>()), dice.number<std::uint8_t>()},
           dice.one_in(2)}};
      header = center.header(CallKind::snapshot, snapshot);
      break;
    }
    case 2: header = center.header(CallKind::start, dice.number<std::uint64_t>()); break;
    default: mutate(dice, message); header = center.header(CallKind::shard, message);
  }
  if (dice.one_in(4)) dice.damage(header);
  if (header.size() > exchange::kMostHeader) header.resize(exchange::kMostHeader);
  return header;
}

/// Any way a vector may travel, also with a rounding that no honest site uses.
Wire some_wire(Dice& dice, Lend lend) {
  using core::Rounding;
  if (dice.one_in(2)) return {};
  const auto half = dice.one_in(2) ? core::HalfKind::fp16 : core::HalfKind::bf16;
  const auto rounding = static_cast<Rounding>(dice.below(4));
  // In other calls it would be an invalid envelope (InvalidEnvelopesEndTheConnectionOnly).
  if (rounding == Rounding::change && lend != Lend::both) return {half, Rounding::none};
  return {half, rounding};
}

/// Well-formed envelopes with arbitrary headers, from a site whose worker is no member: no effect is allowed. Once the site is given up, a
/// new one takes its place.
TEST(HostileCalls, ArbitraryHeadersOfNonMembersChangeNothing) {
  Dice dice("HostileCalls, headers");
  const auto count = messages(20);
  std::uint64_t said = 0, refused = 0;
  std::uint64_t before = 0;
  for (std::uint64_t life = 0; said < count; ++life) {
    Center center({.settings = kDownpour, .server_sites = {0, 0}, .members = {0}});
    std::vector<std::vector<float>> expected{center.pull(0, 0), center.pull(0, 1)};
    const auto expect_shards = [&] {
      for (const strategies::ShardId shard : {0U, 1U}) ASSERT_EQ(center.pull(0, shard), expected[shard]) << said;
    };
    if (life == 1) before = resident();
    for (std::uint64_t k = 0; k < 2 * actors::RefusalCount::kMost && said < count; ++k, ++said) {
      std::vector<float> vector(dice.one_in(3) ? dice.below(center.arena_floats() + 1) : center.arena_floats(), 1);
      const auto lend = static_cast<Lend>(dice.below(4));
      center.call_on(2, some_header(dice, center), std::move(vector), lend, some_wire(dice, lend));
      center.drive([&] { return center.open() <= 64; });
      if (!dice.one_in(100)) continue;
      center.push(0, 0.5F, k + 1);
      for (auto& shard : expected)
        for (auto& x : shard) x += 0.5F;
      ASSERT_NO_FATAL_FAILURE(expect_shards());
    }
    center.drive([&] { return center.open() == 0; });
    ASSERT_NO_FATAL_FAILURE(expect_shards());
    const auto& told = center.told();
    ASSERT_TRUE(told.troubles.empty()) << told.troubles[0].text;
    ASSERT_LT(told.notes.size(), 20U);
    refused += told.notes.size();
  }
  EXPECT_GT(refused, 0U);
  if (before > 0) {
    EXPECT_LT(resident(), before + kMostGrowth);
  }
}

/// The honest worker's result after the other of the two workers has been lost.
std::vector<float> answer_of(Center& center, const std::string& strategy, strategies::ShardId shard) {
  const bool adds = strategy == "downpour" || strategy == "ssp";
  std::vector<float> vector(center.shard_floats(shard), 0.5F);
  auto honest = Center::request(0, adds ? Transfer::push : Transfer::push_pull, 1, shard);
  honest.request.exchange = 1 << 16;  // a gradient of step 1 (strategies/bsp_backup.cpp)
  const auto pushed = center.call(1, center.header(CallKind::shard, honest), vector, adds ? Lend::read : Lend::both);
  EXPECT_TRUE(pushed) << pushed.error().message;
  if (!adds) return vector;
  auto pull = Center::request(0, Transfer::pull, 1, shard);  // its clock need not wait for the others
  pull.request.exchange = honest.request.exchange + 1;
  const auto pulled = center.call(1, center.header(CallKind::shard, pull), vector, Lend::write);
  EXPECT_TRUE(pulled) << pulled.error().message;
  return vector;
}

/// A member that lies may spoil its own numbers, but no process crashes, hangs or grows, and no other worker is lost.
TEST(HostileCalls, ALyingMemberEndsNoOtherProcess) {
  Dice dice("HostileCalls, a member");
  const auto count = messages(15);
  static const std::vector<std::string> kStrategies{"downpour", "easgd", "sync_easgd", "local_sgd",
                                                    "diloco",   "ssp",   "bsp"};
  std::uint64_t said = 0, before = 0;
  for (std::uint64_t life = 0; said < count; ++life) {
    const auto& strategy = kStrategies[life % kStrategies.size()];
    std::vector<std::string> settings{"strategy.name=" + strategy};
    if (strategy == "bsp") settings.emplace_back("strategy.backup=1");
    Center center({.settings = settings, .server_sites = {0, 0}});
    SCOPED_TRACE(strategy);
    if (life == kStrategies.size()) before = resident();
    for (std::uint64_t k = 0; k < 4 * actors::RefusalCount::kMost && said < count; ++k, ++said) {
      auto message = Center::request(1, static_cast<Transfer>(dice.below(3)), 1 + k / 4 + dice.below(3),
                                     static_cast<strategies::ShardId>(dice.below(2)));
      message.request.exchange = k;
      if (dice.one_in(3)) mutate(dice, message);
      const auto lend = dice.one_in(20) ? static_cast<Lend>(dice.below(4)) : actors::lend_of(message.request.kind);
      const auto value = static_cast<float>(dice.real());
      const auto floats = center.shard_floats(message.shard < center.shards() ? message.shard : 0);
      center.call_on(2, center.header(CallKind::shard, message), std::vector<float>(floats, value), lend,
                     some_wire(dice, lend));
      for (int turn = 0; turn < 1000 && center.open() > 6; ++turn)
        center.poll();  // requests that a server holds stay unanswered
      if (center.open() > 6) break;
    }
    const auto& told = center.told();
    ASSERT_TRUE(told.troubles.empty()) << told.troubles[0].text;
    for (const auto& loss : told.losses) EXPECT_EQ(loss.lost, 2U);
    // The servers run, their center is finite, and they answer the honest worker once the lying one is lost.
    center.lose(2);
    for (strategies::ShardId shard = 0; shard < center.shards(); ++shard) {
      const auto answer = answer_of(center, strategy, shard);
      ASSERT_TRUE(std::ranges::all_of(answer, [](float x) { return std::isfinite(x); })) << shard;
    }
    ASSERT_TRUE(center.told().troubles.empty()) << center.told().troubles[0].text;
    for (const auto& loss : center.told().losses) EXPECT_EQ(loss.lost, 2U);
  }
  if (before > 0) {
    EXPECT_LT(resident(), before + kMostGrowth);
  }
}

/// The honest worker's answers in three rounds, while the other worker claims that its rounds are `ahead` rounds later.
std::vector<std::vector<float>> rounds(const std::string& strategy, strategies::Step ahead) {
  const bool backup = strategy == "bsp";
  std::vector<std::string> settings{"strategy.name=" + strategy};
  settings.emplace_back(backup ? "strategy.backup=1" : "strategy.tau=1");
  Center center({.settings = settings});
  std::vector<std::vector<float>> answers;
  for (strategies::Step round = 1; round <= 3; ++round) {
    const auto request = [&](strategies::WorkerId worker, strategies::Step clock) {
      auto message = Center::request(worker, Transfer::push_pull, clock);
      message.request.exchange = (100 * round + worker) << 16;  // a gradient's number, where workers send gradients
      return center.header(CallKind::shard, message);
    };
    std::vector<float> vector(center.arena_floats(), 0.25F * static_cast<float>(round));
    // With a backup worker a step ends with the honest worker's part, which arrives first; else a round needs both parts.
    if (!backup) center.call_on(2, request(1, round + ahead), std::vector<float>(vector.size(), 1), Lend::both);
    const auto answer = center.call(1, request(0, round), vector, Lend::both);
    EXPECT_TRUE(answer) << answer.error().message;
    if (backup) center.call_on(2, request(1, round + ahead), std::vector<float>(vector.size(), 1), Lend::both);
    center.drive([&] { return center.open() == 0; });
    answers.push_back(vector);
  }
  EXPECT_TRUE(center.told().troubles.empty());
  EXPECT_TRUE(center.told().losses.empty());
  return answers;
}

TEST(HostileCalls, AFutureStepDoesNotMoveTheCentre) {
  constexpr strategies::Step kFar = (strategies::Step{1} << 40) - 8;
  for (const char* strategy : {"local_sgd", "diloco", "bsp"}) {
    SCOPED_TRACE(strategy);
    const auto honest = rounds(strategy, 0), lied = rounds(strategy, kFar);
    EXPECT_EQ(lied, honest);
    EXPECT_NE(honest[0], honest[1]);
    EXPECT_NE(honest[1], honest[2]);
  }
}

/// Invalid envelopes, frames of other tags, vectors of other lengths, all out of order.
TEST(HostileCalls, InvalidEnvelopesEndTheConnectionOnly) {
  Dice dice("HostileCalls, envelopes");
  const auto count = messages(15);
  std::uint64_t said = 0, before = 0;
  for (std::uint64_t life = 0; said < count; ++life) {
    Center center({.settings = kDownpour, .members = {0}, .raw = {2}});
    const auto expected = center.pull(0);
    if (life == 1) before = resident();
    auto& raw = center.site(2);
    std::size_t under_way = 0;
    for (int k = 0; k < 300 && said < count; ++k, ++said) {
      exchange::Envelope envelope{.lend = static_cast<Lend>(dice.below(4)),
                                  .id = static_cast<std::uint32_t>(dice.below(50)),
                                  .floats = dice.below(2 * center.arena_floats())};
      if (dice.one_in(3)) envelope.half = dice.number<std::uint8_t>();
      if (dice.one_in(3)) envelope.rounding = static_cast<core::Rounding>(dice.number<std::uint8_t>());
      envelope.set(some_header(dice, center));
      std::string bytes(reinterpret_cast<const char*>(&envelope), sizeof envelope);
      if (dice.one_in(20)) dice.damage(bytes);
      using transport::TagKind;
      const bool vector = dice.one_in(2);
      if (vector) bytes.resize(dice.one_in(2) ? envelope.floats * sizeof(float) : dice.below(100'000));
      const auto kind = vector ? (dice.one_in(8) ? TagKind::scatter : TagKind::push) : TagKind::signal;
      const auto kept = std::make_shared<std::string>(std::move(bytes));
      ++under_way;
      raw.operations->send(
          raw.center,
          transport::make_tag(
              {.run = 1, .exchange = vector ? envelope.id : 0, .kind = kind, .shard = exchange::Envelope::kShard}),
          {reinterpret_cast<const std::byte*>(kept->data()), kept->size()},
          [kept, &under_way](auto, const auto&) { --under_way; });
      if (dice.one_in(16)) center.poll();
    }
    ASSERT_EQ(center.pull(0), expected);
    raw.endpoint->close();
    center.drive([&] { return under_way == 0; });
    const auto& told = center.told();
    ASSERT_TRUE(told.troubles.empty()) << told.troubles[0].text;
    for (const auto& loss : told.losses) EXPECT_EQ(loss.lost, 2U);
  }
  if (before > 0) {
    EXPECT_LT(resident(), before + kMostGrowth);
  }
}

}  // namespace
}  // namespace troupe::hostile
