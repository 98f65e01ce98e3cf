// Contract of transport/endpoint.hpp: how members meet, and what the others see when a member is lost.
#include <thread>

#include "endpoint_contract.hpp"

namespace troupe::transport::testing {
namespace {

class EndpointLoss : public EndpointContract {};
INSTANTIATE_TEST_SUITE_P(Endpoints, EndpointLoss, ::testing::ValuesIn(endpoint_kinds()), kind_name);

TEST_P(EndpointLoss, EveryOutstandingOperationOfTheLostPeerFailsAndNamesIt) {
  Party& a = party("worker-1");
  Party& b = party("worker-2");
  Party& c = party("worker-3");
  const Pair ab = join(a, b);
  const Pair ac = join(a, c);
  const Bytes sent = pattern(10, 1);
  std::vector<Bytes> received(5, Bytes(10));
  std::vector<OperationId> lost;
  for (std::uint32_t i = 0; i < 5; ++i) {
    lost.push_back(a.send(ab.b_at_a, tag(i), view(sent)));
    lost.push_back(a.receive(ab.b_at_a, tag(100 + i), view(received[i])));
  }
  Bytes from_c(10);
  const OperationId other = a.receive(ac.b_at_a, tag(100), view(from_c));
  b->close();
  for (const OperationId operation : lost) {
    const Completion completion = a.finish(operation);
    EXPECT_EQ(completion.outcome, Outcome::failed);
    EXPECT_EQ(completion.peer, ab.b_at_a);
    EXPECT_EQ(completion.error.code, core::Errc::peer_lost);
    EXPECT_NE(completion.error.message.find("worker-2"), std::string::npos) << completion.error.message;
  }
  EXPECT_EQ(a.untaken(), 0u);
  c.expect_done(c.send(ac.a_at_b, tag(100), view(sent)), 10);
  a.expect_done(other, 10);
}

TEST_P(EndpointLoss, LaterOperationsAreRefusedWithTheSameError) {
  Party& a = party("a");
  Party& b = party("worker-2");
  const Pair pair = join(a, b);
  const OperationId sentinel = a.receive(pair.b_at_a, tag(1), MemoryView{});
  b->close();
  a.expect_failed(sentinel, core::Errc::peer_lost, "worker-2");
  const auto send = a->send(pair.b_at_a, tag(1), ConstMemoryView{});
  const auto receive = a->receive(pair.b_at_a, tag(1), MemoryView{});
  ASSERT_FALSE(send);
  ASSERT_FALSE(receive);
  for (const core::Error& error : {send.error(), receive.error()}) {
    EXPECT_EQ(error.code, core::Errc::peer_lost);
    EXPECT_NE(error.message.find("worker-2"), std::string::npos) << error.message;
  }
  a->disconnect(pair.b_at_a, "again");  // no effect
  EXPECT_EQ(a.untaken(), 0u);
}

TEST_P(EndpointLoss, UnreceivedMessagesFailAtTheirSender) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(10, 1);
  Bytes received(10);
  const OperationId sentinel = b.receive(pair.a_at_b, tag(2), view(received));
  const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
  a->close();
  a.expect_cancelled(sending);
  b.expect_failed(sentinel, core::Errc::peer_lost, "/a");
  EXPECT_EQ(b->receive(pair.a_at_b, tag(1), view(received)).error().code, core::Errc::peer_lost);
}

TEST_P(EndpointLoss, DisconnectedPeerIsLostAtBothEnds) {
  Party& a = party("a");
  Party& b = party("worker-2");
  const Pair pair = join(a, b);
  const OperationId mine = a.receive(pair.b_at_a, tag(1), MemoryView{});
  const OperationId theirs = b.receive(pair.a_at_b, tag(1), MemoryView{});
  a->disconnect(pair.b_at_a, "no heartbeat for 5 s");
  const Completion completion = a.finish(mine);
  EXPECT_EQ(completion.error.code, core::Errc::peer_lost);
  EXPECT_NE(completion.error.message.find("worker-2"), std::string::npos);
  EXPECT_NE(completion.error.message.find("no heartbeat for 5 s"), std::string::npos);
  b.expect_failed(theirs, core::Errc::peer_lost, "/a");
}

TEST_P(EndpointLoss, ALostPeerMayConnectAgainUnderANewHandle) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair first = join(a, b);
  exchange(a, first.b_at_a, b, first.a_at_b, tag(1));
  const OperationId sentinel = b.receive(first.a_at_b, tag(2), MemoryView{});
  a->disconnect(first.b_at_a, "partition");
  b.expect_failed(sentinel, core::Errc::peer_lost, "/a");
  const Pair second = join(a, b);
  EXPECT_NE(second.b_at_a, first.b_at_a);
  EXPECT_NE(second.a_at_b, first.a_at_b);
  exchange(a, second.b_at_a, b, second.a_at_b, tag(1));
  EXPECT_EQ(a->send(first.b_at_a, tag(1), ConstMemoryView{}).error().code, core::Errc::peer_lost);
  EXPECT_EQ(a->traffic(first.b_at_a), a->traffic(second.b_at_a));
}

TEST_P(EndpointLoss, EstablishedWaitsForBothSides) {
  Party& a = party("a");
  Party& b = party("b");
  const Connection at_a = a->connect(b->address()).value();
  EXPECT_EQ(a.untaken(), 0u);
  const Connection at_b = b->connect(a->address()).value();
  a.expect_done(at_a.established, 0);
  b.expect_done(at_b.established, 0);
}

TEST_P(EndpointLoss, ConnectingToAClosingMemberFails) {
  Party& a = party("a");
  Party& b = party("b");
  const Connection connection = a->connect(b->address()).value();
  const OperationId sending = a.send(connection.peer, tag(1), ConstMemoryView{});
  b->close();
  a.expect_failed(connection.established, core::Errc::peer_lost, "/b");
  a.expect_failed(sending, core::Errc::peer_lost, "/b");
}

TEST_P(EndpointLoss, ConnectingToALostMemberFails) {
  Party& a = party("a");
  Party& b = party("b");
  const Address gone = b->address();
  b.destroy();
  const auto connection = a->connect(gone);  // an error now if the loss is known, else later
  if (connection)
    a.expect_failed(connection->established, core::Errc::peer_lost, "/b");
  else
    EXPECT_EQ(connection.error().code, core::Errc::peer_lost);
}

TEST_P(EndpointLoss, CancelledConnectDropsThePeer) {
  Party& a = party("a");
  Party& b = party("b");
  const Connection connection = a->connect(b->address()).value();
  const OperationId sending = a.send(connection.peer, tag(1), ConstMemoryView{});
  a->cancel(connection.established);
  a.expect_cancelled(connection.established);
  a.expect_failed(sending, core::Errc::peer_lost, "/b");
  const Pair pair = join(a, b);
  exchange(a, pair.b_at_a, b, pair.a_at_b, tag(1));
}

TEST_P(EndpointLoss, InvalidAddressesAreRefused) {
  Party& a = party("a");
  Party& b = party("b");
  join(a, b);
  const std::string other = GetParam().name == "tcp" ? "ucx" : "tcp";
  for (const std::string& text :
       {a->address().text, b->address().text, other + ":10.0.0.1/2/c", std::string("nonsense"), std::string{}}) {
    const auto connection = a->connect({text});
    ASSERT_FALSE(connection) << text;
    EXPECT_EQ(connection.error().code, core::Errc::usage) << text;
  }
}

TEST_P(EndpointLoss, ALossEndsAWait) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const OperationId receiving = a.receive(pair.b_at_a, tag(1), MemoryView{});
  std::thread closer([&] { b->close(); });
  a.expect_failed(receiving, core::Errc::peer_lost, "/b");
  closer.join();
}

}  // namespace
}  // namespace troupe::transport::testing
