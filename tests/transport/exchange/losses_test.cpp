// Exchanges that do not complete because a member is lost or cancels. The exchange of every member ends with an error, exactly once,
// and no memory stays lent.
#include "tests/transport/exchange/connected_group.hpp"

namespace troupe::exchange::testing {
namespace {

class LossOver : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  CollectiveTask task(Algorithm algorithm) {
    return {.algorithm = algorithm,
            .vector = lengths_,
            .tag = {.run = 1, .exchange = ++exchange_},
            .chunks = {.floats = 64, .window = 2}};
  }

 private:
  std::vector<float> lengths_ = std::vector<float>(2000);
  std::uint32_t exchange_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Endpoints, LossOver, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

constexpr Algorithm kAll[] = {Algorithm::asa, Algorithm::asa16, Algorithm::ring, Algorithm::shm};

TEST_P(LossOver, LostMemberEndsTheExchangeAndIsNamed) {
  for (const auto algorithm : kAll) {
    ConnectedGroup connected(GetParam(), 2);
    if (algorithm == Algorithm::shm && !connected.maps_memory()) continue;
    auto data = connected.vectors(2000);
    const auto run = connected.start(0, task(algorithm), data);
    connected.endpoint(1).close();
    connected.finish();
    ASSERT_FALSE(connected.ended(run)->has_value());
    EXPECT_EQ(connected.ended(run)->error().code, core::Errc::peer_lost);
    EXPECT_NE(connected.ended(run)->error().message.find("rank 1"), std::string::npos)
        << connected.ended(run)->error().message;
    EXPECT_EQ(connected.operations(0).outstanding(), 0U);
  }
}

/// Memory that the member has lent by mapping stays valid while other members may sum in it.
TEST_P(LossOver, MemberMayCloseWhileItsVectorIsMapped) {
  ConnectedGroup connected(GetParam(), 3);
  if (!connected.maps_memory()) GTEST_SKIP() << "nobody maps anything here";
  auto data = connected.vectors(2000);
  const auto sum = task(Algorithm::shm);
  const auto first = connected.start(0, sum, data);
  const auto gone = connected.start(2, sum, data);
  connected.drive(
      [&] { return connected.operations(0).outstanding() == 2 && connected.operations(2).outstanding() == 2; });
  connected.endpoint(2).close();
  connected.drive([&] { return connected.ended(gone).has_value(); });
  data[2] = core::Buffer();
  const auto late = connected.start(1, sum, data);
  connected.finish();
  for (const auto run : {first, late}) {
    ASSERT_FALSE(connected.ended(run)->has_value());
    EXPECT_EQ(connected.ended(run)->error().code, core::Errc::peer_lost);
    EXPECT_NE(connected.ended(run)->error().message.find("rank 2"), std::string::npos)
        << connected.ended(run)->error().message;
  }
}

/// The owner is alive, so no other event ends an exchange that waits for it.
TEST_P(LossOver, MemberWithAnUnmappableVectorIsLostToEveryExchange) {
  ConnectedGroup connected(GetParam(), 2);
  if (!connected.maps_memory()) GTEST_SKIP() << "nobody maps anything here";
  auto data = connected.vectors(2000), others = connected.vectors(2000);
  const auto waiting = connected.start(0, task(Algorithm::asa), others);
  const auto sum = task(Algorithm::shm);
  // Rank 1 sends the place of its vector, as the sum does, and then frees the vector.
  const ArenaPlace place = connected.arenas(1).place_of(data[1].view());
  data[1] = core::Buffer();
  auto tag = sum.tag;
  tag.kind = transport::TagKind::signal;
  connected.operations(1).send(connected.group(1).peers[0], transport::make_tag(tag),
                               {reinterpret_cast<const std::byte*>(&place), sizeof place}, [](auto, const auto&) {});
  const auto late = connected.start(0, sum, data);
  connected.drive([&] { return connected.ended(late).has_value() && connected.ended(waiting).has_value(); });
  for (const auto run : {late, waiting}) {
    ASSERT_FALSE(connected.ended(run)->has_value());
    EXPECT_EQ(connected.ended(run)->error().code, core::Errc::peer_lost);
    EXPECT_NE(connected.ended(run)->error().message.find("rank 1"), std::string::npos)
        << connected.ended(run)->error().message;
  }
}

TEST_P(LossOver, MemberThatCancelsGetsItsMemoryBack) {
  for (const auto algorithm : kAll) {
    ConnectedGroup connected(GetParam(), 3);
    if (algorithm == Algorithm::shm && !connected.maps_memory()) continue;
    auto data = connected.vectors(2000);
    const auto first = connected.start(0, task(algorithm), data);
    connected.poll();
    connected.cancel(first);
    connected.finish();
    ASSERT_FALSE(connected.ended(first)->has_value());
    EXPECT_EQ(connected.ended(first)->error().code, core::Errc::interrupted);
    EXPECT_EQ(connected.operations(0).outstanding(), 0U);
    connected.cancel(first);  // no effect: it has ended
  }
}

TEST_P(LossOver, AfterALossEverythingIsRefusedAtOnce) {
  ConnectedGroup connected(GetParam(), 2);
  auto data = connected.vectors(2000);
  const auto first = connected.start(0, task(Algorithm::asa), data);
  connected.endpoint(1).close();
  connected.finish();
  ASSERT_FALSE(connected.ended(first)->has_value());
  const auto second = connected.start(0, task(Algorithm::ring), data);
  connected.finish();
  ASSERT_FALSE(connected.ended(second)->has_value());
  EXPECT_EQ(connected.ended(second)->error().code, core::Errc::peer_lost);
}

}  // namespace
}  // namespace troupe::exchange::testing
