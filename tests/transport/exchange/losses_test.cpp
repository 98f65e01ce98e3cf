// Exchanges that do not come to their end: a member goes, or gives up. Everyone's ends with an error, exactly once, and nothing is
// lent any more.
#include "tests/transport/exchange/company.hpp"

namespace troupe::exchange::testing {
namespace {

class LossOf : public ::testing::TestWithParam<transport::testing::EndpointKind> {
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

INSTANTIATE_TEST_SUITE_P(Endpoints, LossOf, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

constexpr Algorithm kAll[] = {Algorithm::asa, Algorithm::asa16, Algorithm::ring, Algorithm::shm};

TEST_P(LossOf, AMemberThatGoesEndsTheExchangeWithItsName) {
  for (const auto algorithm : kAll) {
    Company company(GetParam(), 2);
    if (algorithm == Algorithm::shm && !company.maps_memory()) continue;
    auto data = company.vectors(2000);
    const auto run = company.start(0, task(algorithm), data);
    company.endpoint(1).close();
    company.finish();
    ASSERT_FALSE(company.ended(run)->has_value());
    EXPECT_EQ(company.ended(run)->error().code, core::Errc::peer_lost);
    EXPECT_NE(company.ended(run)->error().message.find("rank 1"), std::string::npos)
        << company.ended(run)->error().message;
    EXPECT_EQ(company.courier(0).outstanding(), 0U);
  }
}

/// What it has lent by mapping stays as long as the others may sum in it.
TEST_P(LossOf, AMemberMayGoWhenItsVectorIsMapped) {
  Company company(GetParam(), 3);
  if (!company.maps_memory()) GTEST_SKIP() << "nobody maps anything here";
  auto data = company.vectors(2000);
  const auto sum = task(Algorithm::shm);
  const auto first = company.start(0, sum, data);
  const auto gone = company.start(2, sum, data);
  company.drive([&] { return company.courier(0).outstanding() == 2 && company.courier(2).outstanding() == 2; });
  company.endpoint(2).close();
  company.drive([&] { return company.ended(gone).has_value(); });
  data[2] = core::Buffer();
  const auto late = company.start(1, sum, data);
  company.finish();
  for (const auto run : {first, late}) {
    ASSERT_FALSE(company.ended(run)->has_value());
    EXPECT_EQ(company.ended(run)->error().code, core::Errc::peer_lost);
    EXPECT_NE(company.ended(run)->error().message.find("rank 2"), std::string::npos)
        << company.ended(run)->error().message;
  }
}

/// Nothing else would end what waits for its owner, who is there.
TEST_P(LossOf, AMemberWhoseVectorCannotBeHadIsLostToEveryExchange) {
  Company company(GetParam(), 2);
  if (!company.maps_memory()) GTEST_SKIP() << "nobody maps anything here";
  auto data = company.vectors(2000), others = company.vectors(2000);
  const auto waiting = company.start(0, task(Algorithm::asa), others);
  const auto sum = task(Algorithm::shm);
  // Rank 1 says where its vector is, as it would in the sum; and then it is not there.
  const ArenaPlace place = company.arenas(1).place_of(data[1].view());
  data[1] = core::Buffer();
  auto tag = sum.tag;
  tag.kind = transport::TagKind::signal;
  company.courier(1).send(company.group(1).peers[0], transport::make_tag(tag),
                          {reinterpret_cast<const std::byte*>(&place), sizeof place}, [](auto, const auto&) {});
  const auto late = company.start(0, sum, data);
  company.drive([&] { return company.ended(late).has_value() && company.ended(waiting).has_value(); });
  for (const auto run : {late, waiting}) {
    ASSERT_FALSE(company.ended(run)->has_value());
    EXPECT_EQ(company.ended(run)->error().code, core::Errc::peer_lost);
    EXPECT_NE(company.ended(run)->error().message.find("rank 1"), std::string::npos)
        << company.ended(run)->error().message;
  }
}

TEST_P(LossOf, WhoGivesUpGetsItsMemoryBack) {
  for (const auto algorithm : kAll) {
    Company company(GetParam(), 3);
    if (algorithm == Algorithm::shm && !company.maps_memory()) continue;
    auto data = company.vectors(2000);
    const auto first = company.start(0, task(algorithm), data);
    company.poll();
    company.cancel(first);
    company.finish();
    ASSERT_FALSE(company.ended(first)->has_value());
    EXPECT_EQ(company.ended(first)->error().code, core::Errc::interrupted);
    EXPECT_EQ(company.courier(0).outstanding(), 0U);
    company.cancel(first);  // too late to matter
  }
}

TEST_P(LossOf, AfterALossEverythingIsRefusedAtOnce) {
  Company company(GetParam(), 2);
  auto data = company.vectors(2000);
  const auto first = company.start(0, task(Algorithm::asa), data);
  company.endpoint(1).close();
  company.finish();
  ASSERT_FALSE(company.ended(first)->has_value());
  const auto second = company.start(0, task(Algorithm::ring), data);
  company.finish();
  ASSERT_FALSE(company.ended(second)->has_value());
  EXPECT_EQ(company.ended(second)->error().code, core::Errc::peer_lost);
}

}  // namespace
}  // namespace troupe::exchange::testing
