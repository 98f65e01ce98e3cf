// Every promise of strategies/host/port.hpp in every world that implements it.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/contract/probes.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/worlds.hpp"

namespace troupe::contract {
namespace {

using Promises = std::vector<Promise>;

/// A scenario, and the promises that its probe must check in every world.
struct Row {
  Scenario scenario;
  Promises promises;
};

class Contract : public testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    if (!GetParam().absent.empty()) GTEST_SKIP() << GetParam().absent;
  }

  /// Whether probes can read this world's clock: not in sim and in replays.
  static bool tells_time() { return GetParam().name != "sim" && !GetParam().name.starts_with("replay"); }

  void expect_kept(const Row& row) const {
    reset();
    const auto seen = GetParam().run(row.scenario);
    const auto all = tally();
    ASSERT_TRUE(seen.error.empty()) << seen.error << '\n' << all.broken;
    EXPECT_TRUE(all.broken.empty()) << all.broken;
    const auto wrong = wrong_in(seen.center);
    EXPECT_TRUE(wrong.empty()) << wrong;
    EXPECT_EQ(all.posted, all.read + all.lost) << "peer messages were lost, or came twice";
    auto promises = row.promises;
    if (std::ranges::count(promises, Promise::deadline_once) > 0 && tells_time())
      promises.push_back(Promise::deadline_not_early);
    for (const auto promise : promises)
      EXPECT_GT(all.times.contains(promise) ? all.times.at(promise) : 0, 0U) << name(promise) << " was never looked at";
  }
};

const Promises kOfExchanges{Promise::started_first, Promise::steps_as_asked,      Promise::parameters_kept,
                            Promise::stopped_last,  Promise::requests_in_order,   Promise::pull_sees_push,
                            Promise::one_answer,    Promise::answer_of_the_shard, Promise::slice_as_sent,
                            Promise::slice_is_back, Promise::slices_apart,        Promise::dropped_unused,
                            Promise::deadline_once, Promise::unusable_refused};

TEST_P(Contract, ExchangesOnDemandKeepEveryPromise) {
  expect_kept({{.probe = "probe_exchanges"}, kOfExchanges});
  expect_kept({{.probe = "probe_exchanges", .workers = 1, .servers = 1}, {}});
  expect_kept({{.probe = "probe_exchanges", .workers = 4, .servers = 3, .seed = 500}, kOfExchanges});
}

TEST_P(Contract, ExchangesInStepKeepEveryPromise) {
  expect_kept({{.probe = "probe_exchanges", .options = {"strategy.in_step=true"}, .servers = 3}, kOfExchanges});
}

TEST_P(Contract, ExchangesKeepEveryPromiseWhileMembersAreLost) {
  if (!GetParam().loses) GTEST_SKIP() << "nobody is lost here";
  const Promises promises{Promise::members_ascend, Promise::newcomer_announced, Promise::lost_not_heard};
  expect_kept({{.probe = "probe_exchanges", .workers = 4, .seed = 900, .losses = true}, promises});
  expect_kept({{.probe = "probe_exchanges",
                .options = {"strategy.in_step=true"},
                .workers = 4,
                .servers = 3,
                .seed = 1300,
                .losses = true},
               promises});
}

TEST_P(Contract, CollectivesIncludeEveryMemberOfTheGroup) {
  const Promises all{Promise::collective_of_the_group, Promise::collective_root, Promise::collective_equal};
  for (const std::uint32_t workers : {1U, 2U, 5U})
    expect_kept({{.probe = "probe_sums", .workers = workers, .servers = 1 + workers % 2}, all});
}

TEST_P(Contract, PeerMessagesArriveInOrderAndOnlyOneIsUnread) {
  expect_kept({{.probe = "probe_peer_messages"},
               {Promise::peer_message_as_sent, Promise::peer_messages_in_order, Promise::peer_message_one_unread,
                Promise::peer_message_slot_kept, Promise::skip_told_in_time}});
}

INSTANTIATE_TEST_SUITE_P(, Contract, testing::ValuesIn(worlds()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::contract

int main(int argc, char** argv) {
  troupe::contract::register_probes();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
