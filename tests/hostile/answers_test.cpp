// A site whose server answers arbitrarily: invalid answers are refused before they reach a worker or the coordinator.
#include <chrono>
#include <functional>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/hostile/budget.hpp"
#include "tests/hostile/center.hpp"

namespace troupe::hostile {
namespace {

using actors::ShardAnswer;
using actors::SnapshotTaken;
using exchange::Rpc;
using strategies::Transfer;

constexpr strategies::ShardId kTheirs = 1;
constexpr std::uint32_t kSite = 2;

/// Shard 0 is at site 0, shard 1 at the hostile site.
Center::Options two_shards() { return {.settings = {"strategy.name=downpour"}, .server_sites = {0, kSite}}; }

actors::ShardMessage question() { return Center::request(0, Transfer::push_pull, 3, kTheirs); }
ShardAnswer honest() {
  const auto asked = question().request;
  return {{.request = 1,
           .worker = asked.worker,
           .shard = kTheirs,
           .exchange = asked.exchange,
           .version = 10,
           .staleness = 2,
           .min_clock = 3},
          {}};
}

/// Sends the request, has `with` answer it, and waits until `done`, or until the site is lost.
void answer(Center& center, const std::function<void(const Rpc::Incoming&)>& with, const std::function<bool()>& done) {
  bool asked = false;
  center.on_call = [&](std::uint32_t site, const Rpc::Incoming& call) {
    EXPECT_EQ(site, kSite);
    asked = true;
    with(call);
  };
  center.ask(question());
  center.await([&] { return !center.told().losses.empty() || (asked && done()); });
}

TEST(HostileAnswers, AnInvalidAnswerLosesItsSite) {
  using Reply = strategies::ShardReply;
  constexpr auto kMost = ~std::uint64_t{0};
  const std::vector<std::pair<const char*, std::function<void(Reply&)>>> lies{
      {"another worker's", [](Reply& r) { r.worker = 1; }},
      {"nobody's", [](Reply& r) { r.worker = ~0U; }},
      {"another shard's", [](Reply& r) { r.shard = 0; }},
      {"another exchange's", [](Reply& r) { ++r.exchange; }},
      {"staler than old", [](Reply& r) { r.staleness = r.version + 1; }},
      {"of a version beyond all", [](Reply& r) { r.version = kMost; }},
      {"of a step beyond all", [](Reply& r) { r.min_clock = (std::uint64_t{1} << 40) + 1; }},
      {"of the last step there could be", [](Reply& r) { r.min_clock = kMost; }},
      {"negative holding time", [](Reply& r) { r.held = core::Duration{-1}; }},
      {"negative queueing time", [](Reply& r) { r.queued = core::Duration::min(); }},
      {"after waiting for nobody", [](Reply& r) { r.last = 2; }},
  };
  for (const auto& [what, lie] : lies) {
    SCOPED_TRACE(what);
    Center center(two_shards());
    auto changed = honest();
    lie(changed.reply);
    answer(
        center, [&](const Rpc::Incoming& call) { call.reply(actors::pack_header(center.system(), changed)); },
        [&] { return !center.told().losses.empty(); });
    EXPECT_EQ(center.told().losses[0].lost, kSite);
    ASSERT_FALSE(center.told().notes.empty());
    EXPECT_NE(center.told().notes[0].find("an answer was refused"), std::string::npos) << center.told().notes[0];
  }
}

TEST(HostileAnswers, AnUnexpectedAnswerLosesItsSite) {
  for (const std::string& header : {std::string(), std::string("x"), std::string(200, '\xff')}) {
    SCOPED_TRACE(header.size());
    Center center(two_shards());
    answer(
        center, [&](const Rpc::Incoming& call) { call.reply(header); }, [&] { return !center.told().losses.empty(); });
    EXPECT_EQ(center.told().losses[0].lost, kSite);
  }
}

TEST(HostileAnswers, AValidAnswerIsAccepted) {
  Center center(two_shards());
  for (int k = 0; k < 2; ++k) {
    answer(
        center, [&](const Rpc::Incoming& call) { call.reply(actors::pack_header(center.system(), honest())); },
        [] { return true; });
  }
  // The exchanger has processed an answer by the time of the next call: the first before the second, the second before this one.
  center.on_call = [&](std::uint32_t, const Rpc::Incoming& call) {
    call.reply(actors::pack_header(center.system(), SnapshotTaken{7, 1, 2, 1}));
  };
  EXPECT_TRUE(center.snapshot(kTheirs, 7));
  EXPECT_TRUE(center.told().losses.empty());
  EXPECT_TRUE(center.told().notes.empty());
}

TEST(HostileAnswers, AnInvalidSnapshotIsRefused) {
  const std::vector<std::pair<const char*, SnapshotTaken>> lies{
      {"another one's", {8, 1, 2, 1}},
      {"more than all of the model", {7, 1, 2, 1e300}},
      {"less than nothing of it", {7, 1, 2, -1}},
      {"a share that is no number", {7, 1, 2, std::numeric_limits<double>::quiet_NaN()}},
      {"a version beyond all", {7, 1, ~std::uint64_t{0}, 1}},
      {"steps beyond all", {7, 1, 2, 1, ~std::uint64_t{0}}},
  };
  Center center(two_shards());
  std::string header;
  center.on_call = [&](std::uint32_t, const Rpc::Incoming& call) { call.reply(header); };
  for (const auto& [what, lie] : lies) {
    header = actors::pack_header(center.system(), lie);
    EXPECT_FALSE(center.snapshot(kTheirs, 7)) << what;
  }
  header = "no snapshot at all";
  EXPECT_FALSE(center.snapshot(kTheirs, 7));
  header = actors::pack_header(center.system(), SnapshotTaken{7, 1, 2, 1});
  EXPECT_TRUE(center.snapshot(kTheirs, 7));
}

/// Answers with changed fields and damaged bytes: no process crashes, and the shard at site 0 stays unchanged.
TEST(HostileAnswers, ArbitraryAnswersHarmNoOtherSite) {
  Dice dice("HostileAnswers");
  const auto count = messages(2);
  for (std::uint64_t said = 0; said < count;) {
    Center center(two_shards());
    const auto before = center.pull(0);
    for (std::uint64_t k = 0; k < 100 && said < count && center.told().losses.empty(); ++k, ++said) {
      auto changed = honest();
      auto& reply = changed.reply;
      if (dice.one_in(4)) {
        switch (dice.below(5)) {
          case 0: reply.worker = dice.number<std::uint32_t>(); break;
          case 1: reply.version = dice.number<std::uint64_t>(); break;
          case 2: reply.min_clock = dice.number<std::uint64_t>(); break;
          case 3: reply.staleness = dice.number<std::uint64_t>(); break;
          default: reply.held = core::Duration{static_cast<std::int64_t>(dice.bits())};
        }
      }
      auto header = actors::pack_header(center.system(), changed);
      if (dice.one_in(4)) dice.damage(header);
      if (header.size() > exchange::kMostHeader) header.resize(exchange::kMostHeader);
      answer(
          center,
          [&](const Rpc::Incoming& call) {
            for (auto& x : call.vector) x = static_cast<float>(dice.real());
            dice.one_in(8) ? call.reply(core::fail(core::Errc::internal, header)) : call.reply(header);
          },
          [] { return true; });
    }
    for (const auto& loss : center.told().losses) ASSERT_EQ(loss.lost, kSite);
    ASSERT_EQ(center.pull(0), before);
  }
}

}  // namespace
}  // namespace troupe::hostile
