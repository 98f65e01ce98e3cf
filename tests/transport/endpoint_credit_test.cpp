// Contract of transport/endpoint.hpp: back-pressure. A sender never blocks and never holds more than its credit.
#include <deque>

#include "endpoint_contract.hpp"

namespace troupe::transport::testing {
namespace {

class EndpointCredit : public EndpointContract {};
INSTANTIATE_TEST_SUITE_P(Endpoints, EndpointCredit, ::testing::ValuesIn(endpoint_kinds()), kind_name);

TEST_P(EndpointCredit, MessagesAreBounded) {
  Party& a = party("a", {.messages = 3, .bytes = 1000});
  Party& b = party("b");
  const Pair pair = join(a, b);
  std::deque<OperationId> sending;
  for (int i = 0; i < 3; ++i) sending.push_back(a.send(pair.b_at_a, tag(1), ConstMemoryView{}));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(a.try_send(pair.b_at_a, tag(1), ConstMemoryView{}));
  b.expect_done(b.receive(pair.a_at_b, tag(1), MemoryView{}), 0);
  a.expect_done(sending.front(), 0);  // the completion returns the credit of one message
  EXPECT_TRUE(a.try_send(pair.b_at_a, tag(1), ConstMemoryView{}));
  EXPECT_FALSE(a.try_send(pair.b_at_a, tag(1), ConstMemoryView{}));
}

TEST_P(EndpointCredit, BytesAreBounded) {
  Party& a = party("a", {.messages = 100, .bytes = 1000});
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes part = pattern(400, 1), rest = pattern(200, 2), one = pattern(1, 3);
  const OperationId first = a.send(pair.b_at_a, tag(1), view(part));
  a.send(pair.b_at_a, tag(2), view(part));
  EXPECT_FALSE(a.try_send(pair.b_at_a, tag(3), view(part)));
  a.send(pair.b_at_a, tag(3), view(rest));  // exactly full
  EXPECT_FALSE(a.try_send(pair.b_at_a, tag(4), view(one)));
  a.send(pair.b_at_a, tag(4), ConstMemoryView{});  // a signal needs no bytes of credit
  Bytes received(400);
  b.expect_done(b.receive(pair.a_at_b, tag(1), view(received)), 400);
  a.expect_done(first, 400);
  EXPECT_EQ(received, part);
  EXPECT_TRUE(a.try_send(pair.b_at_a, tag(5), view(part)));
  a->close();  // the buffers are destroyed before the endpoints
}

TEST_P(EndpointCredit, AMessageAboveTheWindowGoesAlone) {
  Party& a = party("a", {.messages = 100, .bytes = 1000});
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes one = pattern(1, 1), large = pattern(5000, 2);
  const OperationId small = a.send(pair.b_at_a, tag(1), view(one));
  EXPECT_FALSE(a.try_send(pair.b_at_a, tag(2), view(large)));
  Bytes received_one(1), received_large(5000);
  b.expect_done(b.receive(pair.a_at_b, tag(1), view(received_one)), 1);
  a.expect_done(small, 1);
  const OperationId alone = a.send(pair.b_at_a, tag(2), view(large));
  EXPECT_FALSE(a.try_send(pair.b_at_a, tag(1), view(one)));
  b.expect_done(b.receive(pair.a_at_b, tag(2), view(received_large)), 5000);
  a.expect_done(alone, 5000);
  EXPECT_EQ(received_large, large);
  EXPECT_TRUE(a.try_send(pair.b_at_a, tag(1), view(one)));
  a->close();  // the buffers are destroyed before the endpoints
}

TEST_P(EndpointCredit, EachPeerHasItsOwnCredit) {
  Party& a = party("a", {.messages = 1, .bytes = 1000});
  Party& b = party("b");
  Party& c = party("c");
  const Pair ab = join(a, b);
  const Pair ac = join(a, c);
  EXPECT_TRUE(a.try_send(ab.b_at_a, tag(1), ConstMemoryView{}));
  EXPECT_FALSE(a.try_send(ab.b_at_a, tag(1), ConstMemoryView{}));  // b does not receive …
  exchange(a, ac.b_at_a, c, ac.a_at_b, tag(1));                    // … and c is not delayed
  exchange(b, ab.a_at_b, a, ab.b_at_a, tag(2));                    // nor is the other direction
}

TEST_P(EndpointCredit, CancelledAndCorruptMessagesReturnTheirCredit) {
  Party& a = party("a", {.messages = 1, .bytes = 100});
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(100, 1);
  const OperationId cancelled = a.send(pair.b_at_a, tag(1), view(sent));
  a->cancel(cancelled);
  a.expect_cancelled(cancelled);
  const OperationId corrupt = a.send(pair.b_at_a, tag(2), view(sent));
  Bytes wrong(99);
  b.expect_failed(b.receive(pair.a_at_b, tag(2), view(wrong)), core::Errc::corrupt, "99");
  a.expect_failed(corrupt, core::Errc::corrupt, "99");
  EXPECT_TRUE(a.try_send(pair.b_at_a, tag(3), view(sent)));
  a->close();  // the buffers are destroyed before the endpoints
}

TEST_P(EndpointCredit, ARefusedSendLeavesNoTrace) {
  Party& a = party("a", {.messages = 1, .bytes = 100});
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes first = pattern(10, 1), refused = pattern(10, 2), second = pattern(10, 3);
  const OperationId sending = a.send(pair.b_at_a, tag(1), view(first));
  EXPECT_FALSE(a.try_send(pair.b_at_a, tag(1), view(refused)));
  Bytes received(10);
  b.expect_done(b.receive(pair.a_at_b, tag(1), view(received)), 10);
  a.expect_done(sending, 10);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
  a.expect_done(a.send(pair.b_at_a, tag(1), view(second)), 10);
  b.expect_done(receiving, 10);
  EXPECT_EQ(received, second);
  EXPECT_EQ(a->traffic(pair.b_at_a), (Traffic{.messages_sent = 2, .bytes_sent = 20}));
  EXPECT_EQ(a.untaken(), 0u);
}

// A sender without credit waits for one of its own completions and tries again. This moves everything, without a busy
// loop.
TEST_P(EndpointCredit, WaitingForCompletionsSendsEverything) {
  Party& a = party("a", {.messages = 2, .bytes = 1000});
  Party& b = party("b");
  const Pair pair = join(a, b);
  constexpr unsigned kMessages = 200;
  std::vector<Bytes> sent;
  for (unsigned i = 0; i < kMessages; ++i) sent.push_back(pattern(1 + i % 300, i));
  std::deque<OperationId> under_way;
  unsigned received = 0;
  for (unsigned i = 0; i < kMessages;) {
    OperationId started{};
    if (a.try_send(pair.b_at_a, tag(1), view(sent[i]), &started)) {
      under_way.push_back(started);
      EXPECT_LE(under_way.size(), 2u);
      ++i;
      continue;
    }
    Bytes got(sent[received].size());
    b.expect_done(b.receive(pair.a_at_b, tag(1), view(got)), got.size());
    EXPECT_EQ(got, sent[received++]);
    EXPECT_EQ(a.finish(under_way.front()).outcome, Outcome::done);
    under_way.pop_front();
  }
  EXPECT_EQ(received + under_way.size(), kMessages);
  a->close();  // the buffers are destroyed before the endpoints
}

}  // namespace
}  // namespace troupe::transport::testing
