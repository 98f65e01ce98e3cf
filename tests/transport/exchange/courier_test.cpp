#include "transport/exchange/courier.hpp"

#include <algorithm>

#include "tests/transport/exchange/company.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::Completion;
using transport::Outcome;
using transport::testing::Bytes;
using transport::testing::pattern;
using transport::testing::tag;
using transport::testing::view;

class CourierOf : public ::testing::TestWithParam<transport::testing::EndpointKind> {};
INSTANTIATE_TEST_SUITE_P(Endpoints, CourierOf, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

TEST_P(CourierOf, SendsWaitForCreditInTheirOrder) {
  Company company(GetParam(), 2, {.messages = 1, .bytes = 1000});
  constexpr std::size_t kMessages = 20;
  std::vector<Bytes> out, in(kMessages, Bytes(64));
  for (std::size_t i = 0; i < kMessages; ++i) out.push_back(pattern(64, static_cast<unsigned>(i)));
  std::vector<std::size_t> sent;
  std::size_t received = 0;
  for (std::size_t i = 0; i < kMessages; ++i)
    company.courier(0).send(company.group(0).peers[1], tag(1), view(out[i]),
                            [&, i](auto, const Completion& completion) {
                              EXPECT_EQ(completion.outcome, Outcome::done);
                              sent.push_back(i);
                            });
  EXPECT_EQ(company.courier(0).outstanding(), kMessages);
  for (auto& memory : in)
    company.courier(1).receive(company.group(1).peers[0], tag(1), view(memory),
                               [&](auto, const Completion&) { ++received; });
  company.drive([&] { return sent.size() == kMessages && received == kMessages; });
  EXPECT_TRUE(std::ranges::is_sorted(sent));
  EXPECT_EQ(in, out);
}

TEST_P(CourierOf, CancelledBeforeItsTurnASendIsNeverPosted) {
  Company company(GetParam(), 2, {.messages = 1, .bytes = 1000});
  const Bytes first = pattern(10, 1), second = pattern(10, 2), third = pattern(10, 3);
  std::vector<Outcome> outcomes(3, Outcome::failed);
  std::size_t ended = 0;
  const auto post = [&](std::size_t which, const Bytes& memory) {
    return company.courier(0).send(company.group(0).peers[1], tag(1), view(memory),
                                   [&, which](auto, const Completion& c) {
                                     outcomes[which] = c.outcome;
                                     ++ended;
                                   });
  };
  post(0, first);
  const auto waiting = post(1, second);
  post(2, third);
  company.courier(0).cancel(waiting);
  EXPECT_EQ(ended, 0U);  // nobody is called from inside a call
  Bytes a(10), b(10);
  for (Bytes* memory : {&a, &b})
    company.courier(1).receive(company.group(1).peers[0], tag(1), view(*memory),
                               [&](auto, const Completion&) { ++ended; });
  company.drive([&] { return ended == 5; });
  EXPECT_EQ(outcomes, (std::vector{Outcome::done, Outcome::cancelled, Outcome::done}));
  EXPECT_EQ(a, first);
  EXPECT_EQ(b, third);
}

TEST_P(CourierOf, KnowsWhatIsNotItsOwn) {
  Company company(GetParam(), 2);
  EXPECT_FALSE(company.courier(0).deliver({.operation = transport::OperationId{123456}, .peer = {}, .error = {}}));
}

}  // namespace
}  // namespace troupe::exchange::testing
