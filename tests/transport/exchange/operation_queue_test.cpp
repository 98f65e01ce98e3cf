#include "transport/exchange/operation_queue.hpp"

#include <algorithm>

#include "tests/transport/exchange/connected_group.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::Completion;
using transport::Outcome;
using transport::testing::Bytes;
using transport::testing::pattern;
using transport::testing::tag;
using transport::testing::view;

class OperationQueueOver : public ::testing::TestWithParam<transport::testing::EndpointKind> {};
INSTANTIATE_TEST_SUITE_P(Endpoints, OperationQueueOver, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

TEST_P(OperationQueueOver, SendsWaitForCreditInTheirOrder) {
  ConnectedGroup connected(GetParam(), 2, {.messages = 1, .bytes = 1000});
  constexpr std::size_t kMessages = 20;
  std::vector<Bytes> out, in(kMessages, Bytes(64));
  for (std::size_t i = 0; i < kMessages; ++i) out.push_back(pattern(64, static_cast<unsigned>(i)));
  std::vector<std::size_t> sent;
  std::size_t received = 0;
  for (std::size_t i = 0; i < kMessages; ++i)
    connected.operations(0).send(connected.group(0).peers[1], tag(1), view(out[i]),
                                 [&, i](auto, const Completion& completion) {
                                   EXPECT_EQ(completion.outcome, Outcome::done);
                                   sent.push_back(i);
                                 });
  EXPECT_EQ(connected.operations(0).outstanding(), kMessages);
  for (auto& memory : in)
    connected.operations(1).receive(connected.group(1).peers[0], tag(1), view(memory),
                                    [&](auto, const Completion&) { ++received; });
  connected.drive([&] { return sent.size() == kMessages && received == kMessages; });
  EXPECT_TRUE(std::ranges::is_sorted(sent));
  EXPECT_EQ(in, out);
}

TEST_P(OperationQueueOver, SendCancelledBeforeItsTurnIsNeverPosted) {
  ConnectedGroup connected(GetParam(), 2, {.messages = 1, .bytes = 1000});
  const Bytes first = pattern(10, 1), second = pattern(10, 2), third = pattern(10, 3);
  std::vector<Outcome> outcomes(3, Outcome::failed);
  std::size_t ended = 0;
  const auto post = [&](std::size_t which, const Bytes& memory) {
    return connected.operations(0).send(connected.group(0).peers[1], tag(1), view(memory),
                                        [&, which](auto, const Completion& c) {
                                          outcomes[which] = c.outcome;
                                          ++ended;
                                        });
  };
  post(0, first);
  const auto waiting = post(1, second);
  post(2, third);
  connected.operations(0).cancel(waiting);
  EXPECT_EQ(ended, 0U);  // no callback runs inside a call
  Bytes a(10), b(10);
  for (Bytes* memory : {&a, &b})
    connected.operations(1).receive(connected.group(1).peers[0], tag(1), view(*memory),
                                    [&](auto, const Completion&) { ++ended; });
  connected.drive([&] { return ended == 5; });
  EXPECT_EQ(outcomes, (std::vector{Outcome::done, Outcome::cancelled, Outcome::done}));
  EXPECT_EQ(a, first);
  EXPECT_EQ(b, third);
}

TEST_P(OperationQueueOver, DeliverReturnsFalseForForeignOperation) {
  ConnectedGroup connected(GetParam(), 2);
  EXPECT_FALSE(connected.operations(0).deliver({.operation = transport::OperationId{123456}, .peer = {}, .error = {}}));
}

}  // namespace
}  // namespace troupe::exchange::testing
