// Contract of transport/endpoint.hpp: which receive gets which message.
#include <array>
#include <stdexcept>

#include "endpoint_contract.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::transport::testing {
namespace {

class EndpointMessages : public EndpointContract {};
INSTANTIATE_TEST_SUITE_P(Endpoints, EndpointMessages, ::testing::ValuesIn(endpoint_kinds()), kind_name);

TEST_P(EndpointMessages, RegistryRowAgreesWithTheEndpoint) {
  const auto& info = endpoint_info(GetParam().name);
  Endpoint& made = *party("a");
  const auto& can = made.capabilities();
  EXPECT_EQ(can.name, info.name);
  EXPECT_TRUE(made.address().text.starts_with(std::string(info.name) + ":")) << made.address().text;
  EXPECT_EQ(can.maps_peer_memory, info.maps_memory);
  EXPECT_EQ(made.native_reduction() != nullptr, info.sums_itself && !GetParam().on_device);
  // tcp without certificates stays within a host.
  EXPECT_TRUE(!can.between_hosts || info.reach == Reach::hosts);
}

TEST_P(EndpointMessages, EveryLengthArrivesWhole) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  std::uint32_t exchange = 0;
  for (const std::size_t size : {0u, 1u, 3u, 15u, 16u, 17u, 63u, 64u, 65u, 4095u, 4096u, 4097u, (1u << 20) + 1}) {
    const Bytes sent = pattern(size, exchange);
    Bytes guarded = pattern(size + 2, 999);  // one guard byte on each side
    const Bytes before = guarded;
    const Tag with = tag(exchange++);
    const OperationId sending = a.send(pair.b_at_a, with, view(sent));
    const OperationId receiving = b.receive(pair.a_at_b, with, view(MemoryView{guarded.data() + 1, size}));
    a.expect_done(sending, size);
    b.expect_done(receiving, size);
    EXPECT_EQ(Bytes(guarded.begin() + 1, guarded.end() - 1), sent) << size;
    EXPECT_EQ(guarded.front(), before.front());
    EXPECT_EQ(guarded.back(), before.back());
  }
}

TEST_P(EndpointMessages, NullMemoryIsFineForASignal) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const OperationId sending = a.send(pair.b_at_a, tag(1), ConstMemoryView{});
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), MemoryView{});
  a.expect_done(sending, 0);
  b.expect_done(receiving, 0);
}

TEST_P(EndpointMessages, MessagesWaitForReceivesPostedInAnotherOrder) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const std::array<Bytes, 3> sent{pattern(100, 0), pattern(200, 1), pattern(300, 2)};
  std::array<OperationId, 3> sending{};
  for (const std::uint32_t i : {2u, 0u, 1u}) sending[i] = a.send(pair.b_at_a, tag(i), view(sent[i]));
  for (const std::uint32_t i : {0u, 1u, 2u}) {
    Bytes received(sent[i].size());
    b.expect_done(b.receive(pair.a_at_b, tag(i), view(received)), received.size());
    a.expect_done(sending[i], received.size());
    EXPECT_EQ(received, sent[i]);
  }
}

TEST_P(EndpointMessages, ReceivesWaitForMessagesSentInAnotherOrder) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  std::array<Bytes, 3> received{Bytes(100), Bytes(100), Bytes(100)};
  std::array<OperationId, 3> receiving{};
  for (const std::uint32_t i : {1u, 2u, 0u}) receiving[i] = b.receive(pair.a_at_b, tag(i), view(received[i]));
  for (const std::uint32_t i : {0u, 1u, 2u}) {
    const Bytes sent = pattern(100, i);
    a.expect_done(a.send(pair.b_at_a, tag(i), view(sent)), 100);
    b.expect_done(receiving[i], 100);
    EXPECT_EQ(received[i], sent);
  }
}

TEST_P(EndpointMessages, EqualTagsMatchInTheOrderPosted) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  constexpr std::size_t kEach = 8;
  std::vector<Bytes> sent, received(2 * kEach, Bytes(64));
  for (unsigned i = 0; i < 2 * kEach; ++i) sent.push_back(pattern(64, i));
  std::vector<OperationId> sending, receiving;
  // One half of the messages finds no posted receive, the other half finds receives waiting.
  for (std::size_t i = 0; i < kEach; ++i) sending.push_back(a.send(pair.b_at_a, tag(7), view(sent[i])));
  for (Bytes& r : received) receiving.push_back(b.receive(pair.a_at_b, tag(7), view(r)));
  for (std::size_t i = kEach; i < 2 * kEach; ++i) sending.push_back(a.send(pair.b_at_a, tag(7), view(sent[i])));
  for (std::size_t i = 0; i < 2 * kEach; ++i) {
    a.expect_done(sending[i], 64);
    b.expect_done(receiving[i], 64);
    EXPECT_EQ(received[i], sent[i]) << i;
  }
}

TEST_P(EndpointMessages, EveryFieldOfATagDistinguishes) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const std::array<TagFields, 6> fields{{{.run = 1},
                                         {.run = 2},
                                         {.run = 1, .exchange = 1},
                                         {.run = 1, .kind = TagKind::peer},
                                         {.run = 1, .shard = 1},
                                         {.run = 1, .chunk = 1}}};
  std::array<Bytes, 6> received;
  std::array<OperationId, 6> receiving{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    received[i].resize(32);
    receiving[i] = b.receive(pair.a_at_b, make_tag(fields[i]), view(received[i]));
  }
  for (std::size_t i = fields.size(); i-- > 0;) {
    const Bytes sent = pattern(32, static_cast<unsigned>(i));
    a.expect_done(a.send(pair.b_at_a, make_tag(fields[i]), view(sent)), 32);
    b.expect_done(receiving[i], 32);
    EXPECT_EQ(received[i], sent) << to_string(make_tag(fields[i]));
  }
}

TEST_P(EndpointMessages, AReceiveTakesOnlyItsPeersMessage) {
  Party& a = party("a");
  Party& b = party("b");
  Party& c = party("c");
  const Pair ac = join(a, c);
  const Pair bc = join(b, c);
  const Bytes from_a = pattern(50, 1), from_b = pattern(50, 2);
  Bytes received_a(50), received_b(50);
  const OperationId receiving_b = c.receive(bc.a_at_b, tag(1), view(received_b));
  const OperationId sending_a = a.send(ac.b_at_a, tag(1), view(from_a));
  const OperationId sending_b = b.send(bc.b_at_a, tag(1), view(from_b));
  const OperationId receiving_a = c.receive(ac.a_at_b, tag(1), view(received_a));
  a.expect_done(sending_a, 50);
  b.expect_done(sending_b, 50);
  c.expect_done(receiving_a, 50);
  c.expect_done(receiving_b, 50);
  EXPECT_EQ(received_a, from_a);
  EXPECT_EQ(received_b, from_b);
}

TEST_P(EndpointMessages, CompletionsNameTheirPeer) {
  Party& a = party("a");
  Party& b = party("b");
  Party& c = party("c");
  join(a, b);
  const Pair pair = join(a, c);
  const OperationId sending = a.send(pair.b_at_a, tag(1), ConstMemoryView{});
  const OperationId receiving = c.receive(pair.a_at_b, tag(1), MemoryView{});
  EXPECT_EQ(a.finish(sending).peer, pair.b_at_a);
  EXPECT_EQ(c.finish(receiving).peer, pair.a_at_b);
}

TEST_P(EndpointMessages, OperationsPostedBeforeThePeerConnectsComplete) {
  Party& a = party("a");
  Party& b = party("b");
  const Connection at_a = a->connect(b->address()).value();
  const Bytes ping = pattern(40, 1), pong = pattern(40, 2);
  Bytes got_ping(40), got_pong(40);
  const OperationId sending = a.send(at_a.peer, tag(1), view(ping));
  const OperationId receiving = a.receive(at_a.peer, tag(2), view(got_pong));
  EXPECT_EQ(a.untaken(), 0u);
  const Connection at_b = b->connect(a->address()).value();
  b.expect_done(b.receive(at_b.peer, tag(1), view(got_ping)), 40);
  b.expect_done(b.send(at_b.peer, tag(2), view(pong)), 40);
  a.expect_done(at_a.established, 0);
  a.expect_done(sending, 40);
  a.expect_done(receiving, 40);
  EXPECT_EQ(got_ping, ping);
  EXPECT_EQ(got_pong, pong);
}

TEST_P(EndpointMessages, AnotherLengthIsCorruptOnBothSidesAndConsumesTheMessage) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  for (const std::size_t expected : {0u, 99u, 101u}) {
    for (const bool receive_first : {false, true}) {
      const Bytes sent = pattern(100, 1), untouched = pattern(expected, 2);
      Bytes received = untouched;
      OperationId sending{}, receiving{};
      if (receive_first) receiving = b.receive(pair.a_at_b, tag(5), view(received));
      sending = a.send(pair.b_at_a, tag(5), view(sent));
      if (!receive_first) receiving = b.receive(pair.a_at_b, tag(5), view(received));
      a.expect_failed(sending, core::Errc::corrupt, "100 bytes");
      b.expect_failed(receiving, core::Errc::corrupt, to_string(tag(5)));
      EXPECT_EQ(received, untouched);
    }
  }
  exchange(a, pair.b_at_a, b, pair.a_at_b, tag(5));  // the connection still works, and nothing of tag 5 remains
}

TEST_P(EndpointMessages, TrafficCountsPayloadThatArrivedAndNothingElse) {
  Party& a = party("a");
  Party& b = party("b");
  Party& c = party("c");
  const Pair ab = join(a, b);
  const Pair ac = join(a, c);
  std::uint64_t bytes = 0;
  for (const std::size_t size : {0u, 1u, 4096u, 123457u}) {
    const Bytes sent = pattern(size, 3);
    Bytes received(size);
    const OperationId sending = a.send(ab.b_at_a, tag(1), view(sent));
    b.expect_done(b.receive(ab.a_at_b, tag(1), view(received)), size);
    a.expect_done(sending, size);
    bytes += size;
  }
  const Bytes ignored = pattern(77, 4);
  Bytes wrong(78);
  const OperationId corrupt = a.send(ab.b_at_a, tag(2), view(ignored));
  b.expect_failed(b.receive(ab.a_at_b, tag(2), view(wrong)), core::Errc::corrupt, "78");
  a.expect_failed(corrupt, core::Errc::corrupt, "77");
  const OperationId cancelled = a.send(ab.b_at_a, tag(3), view(ignored));
  a->cancel(cancelled);
  a.expect_cancelled(cancelled);
  EXPECT_EQ(a->traffic(ab.b_at_a), (Traffic{.messages_sent = 4, .bytes_sent = bytes}));
  EXPECT_EQ(b->traffic(ab.a_at_b), (Traffic{.messages_received = 4, .bytes_received = bytes}));
  EXPECT_EQ(a->traffic(ac.b_at_a), Traffic{});
  b->close();
  EXPECT_EQ(a->traffic(ab.b_at_a).bytes_sent, bytes);  // the counters of a lost peer stay
}

TEST_P(EndpointMessages, ProgressGrowsAtBothEndsWithMessagesOnly) {
  Party& a = party("a");
  Party& b = party("b");
  Party& c = party("c");
  const Pair ab = join(a, b), ac = join(a, c);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{3} << 20}) {
    const auto before = std::pair(a->progress(ab.b_at_a), b->progress(ab.a_at_b));
    Bytes sent(size), received(size);
    const OperationId sending = a.send(ab.b_at_a, tag(1), view(sent));
    b.expect_done(b.receive(ab.a_at_b, tag(1), view(received)), size);
    a.expect_done(sending, size);
    EXPECT_GT(a->progress(ab.b_at_a), before.first);
    EXPECT_GT(b->progress(ab.a_at_b), before.second);
  }
  EXPECT_EQ(a->progress(ac.b_at_a), 0U);
}

TEST_P(EndpointMessages, CapabilitiesAgreeWithTheBehaviour) {
  Party& a = party("a");
  const Capabilities& can = a->capabilities();
  EXPECT_EQ(can.name, GetParam().name);
  EXPECT_TRUE(a->address().text.starts_with(can.name + ":"));
  EXPECT_TRUE(can.takes(core::MemorySpace::host));
  EXPECT_GE(can.max_message_bytes, std::size_t{1} << 30);
  EXPECT_EQ(can.maps_peer_memory, a->mapped_memory() != nullptr);
}

TEST_P(EndpointMessages, BrokenPreconditionsThrow) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  EXPECT_THROW((void)a->send(Peer{17}, tag(1), ConstMemoryView{}), std::out_of_range);
  EXPECT_THROW((void)a->receive(Peer{17}, tag(1), MemoryView{}), std::out_of_range);
  EXPECT_THROW((void)a->traffic(Peer{17}), std::out_of_range);
  EXPECT_THROW((void)a->progress(Peer{17}), std::out_of_range);
  EXPECT_THROW(a->disconnect(Peer{17}, "test"), std::out_of_range);
  if (a->capabilities().takes(core::MemorySpace::device)) return;
  const MemoryView device{nullptr, 0, core::MemorySpace::device};
  EXPECT_THROW((void)a->send(pair.b_at_a, tag(1), device), std::invalid_argument);
  EXPECT_THROW((void)a->receive(pair.b_at_a, tag(1), device), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::transport::testing
