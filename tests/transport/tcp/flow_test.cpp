// What only tcp guarantees about the flow of bytes: window, turns of messages, and processes that stop.
#include <signal.h>

#include <map>
#include <thread>
#include <utility>

#include "peers.hpp"
#include "tests/transport/child.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::size_t kLong = std::size_t{4} << 20;

TcpOptions flow_options() { return {.listen = "127.0.0.2:0"}; }

// The peer never answers. The sender announces as many messages as the window allows, sends no long message that was
// not requested, and sends no more bytes of small messages than the window has.
TEST(TcpFlow, APeerThatDoesNotReceiveGetsItsWindowAndNoMore) {
  const Bytes small = pattern(16 << 10, 1), large = pattern(kLong, 2);
  Party a = tcp_party("a", flow_options(), {.messages = 1000, .bytes = std::size_t{1} << 30});
  RawPeer peer(a);  // its window: 256 messages, 1 MiB
  for (std::uint32_t i = 0; i < 300; ++i) a.send(peer.at_party, tag(i), i % 3 == 0 ? view(large) : view(small));
  std::size_t offers = 0, bytes = 0;
  std::vector<std::uint64_t> eager;
  while (offers < 256) {
    const Frame frame = peer.socket.read_frame();
    ASSERT_EQ(frame.type, FrameType::offer);
    offers += 1;
    bytes += frame.length;
    EXPECT_TRUE(frame.length == 0 || frame.length == small.size());
    if (frame.length > 0) eager.push_back(frame.message);
  }
  EXPECT_EQ(bytes, std::size_t{1} << 20);
  // One message that ends makes room for one: the 257th, and no other.
  peer.socket.write({.type = FrameType::done, .message = eager.front()});
  EXPECT_EQ(peer.socket.read_frame().message, 257u);
}

TEST(TcpFlow, ChunksOfDifferentTagsTakeTurns) {
  const Bytes large = pattern(kLong, 1);
  Party a = tcp_party("a", flow_options());
  RawPeer peer(a);
  for (const std::uint32_t t : {1u, 1u, 1u, 2u}) a.send(peer.at_party, tag(t), view(large));
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(peer.socket.read_frame().message, i);
  Bytes wants;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const FrameBytes want = encode({.type = FrameType::want, .message = i});
    wants.insert(wants.end(), want.begin(), want.end());
  }
  peer.socket.write(wants.data(), wants.size());  // in one write, so that all are known before the first chunk
  const std::size_t chunks = kLong / kChunkBytes;
  std::map<std::uint64_t, std::size_t> received;
  for (std::size_t i = 0; i < 2 * chunks; ++i) received[peer.socket.read_frame().message] += 1;
  // The two tags share the chunks equally; of tag 1 only the first message is sent.
  EXPECT_EQ(received, (std::map<std::uint64_t, std::size_t>{{1, chunks}, {4, chunks}}));
}

TEST(TcpFlow, ASmallMessageOvertakesALongOne) {
  const Bytes large = pattern(64 << 20, 1), small = pattern(100, 2);  // lent until the endpoint ends
  Party a = tcp_party("a", flow_options());
  RawPeer peer(a);
  a.send(peer.at_party, tag(1), view(large));
  EXPECT_EQ(peer.socket.read_frame().type, FrameType::offer);
  peer.socket.write({.type = FrameType::want, .message = 1});
  EXPECT_EQ(peer.socket.read_frame().type, FrameType::chunk);
  EXPECT_FALSE(a.try_send(peer.at_party, tag(2), view(small)));  // no credit left …
  a.send(peer.at_party, tag(2), ConstMemoryView{});              // … but a signal needs none
  std::size_t chunks = 1;
  Frame frame;
  while ((frame = peer.socket.read_frame()).type == FrameType::chunk) chunks += 1;
  EXPECT_EQ(frame.type, FrameType::offer);
  EXPECT_LT(chunks, large.size() / kChunkBytes);
}

// Received bytes of a chunk are progress; heartbeats are not.
TEST(TcpFlow, MessageBytesAreProgressAndHeartbeatsAreNot) {
  Party a = tcp_party("a", flow_options());
  RawPeer peer(a);
  Bytes received(kLong);
  a.receive(peer.at_party, tag(1), view(received));
  peer.socket.write({.type = FrameType::offer, .message = 1, .tag = static_cast<std::uint64_t>(tag(1)), .size = kLong});
  EXPECT_EQ(peer.socket.read_frame().type, FrameType::want);
  const auto before = a->progress(peer.at_party);
  constexpr int kBeats = 100;
  for (int beat = 0; beat < kBeats; ++beat) peer.socket.write({.type = FrameType::heartbeat});
  constexpr std::size_t kPart = 1000;
  const FrameBytes chunk =
      encode({.type = FrameType::chunk, .length = static_cast<std::uint32_t>(kChunkBytes), .message = 1, .ack = 1});
  const Bytes part(kPart);
  peer.socket.write(chunk.data(), chunk.size());
  peer.socket.write(part.data(), part.size());
  while (a->progress(peer.at_party) < before + kPart) std::this_thread::yield();
  // The endpoint may count its own answers after this test has read them.
  EXPECT_LT(a->progress(peer.at_party), before + kPart + kBeats * kFrameBytes / 2);
}

TEST(TcpFlow, PeerLearnsTheReasonOfALoss) {
  Party a = tcp_party("a");
  Party b = tcp_party("b");
  const Pair pair = join(a, b);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), MemoryView{});
  a->disconnect(pair.b_at_a, "no lease since step 7");
  b.expect_failed(receiving, core::Errc::peer_lost, "no lease since step 7");
}

/// In the child: sends back one message, then stays until it is killed.
void echo(Line& line, const TcpOptions& options) {
  Party b = tcp_party("child", options);
  line.say(b->address().text);
  const Connection connection = b->connect({line.hear()}).value();
  Bytes received(kLong);
  b.expect_done(b.receive(connection.peer, tag(1), view(received)), kLong);
  b.expect_done(b.send(connection.peer, tag(2), view(std::as_const(received))), kLong);
  (void)b.finish(b.receive(connection.peer, tag(3), MemoryView{}));
}

TEST(TcpFlow, MessageReturnsFromAnotherProcess) {
  for (const bool tls : {false, true}) {
    TcpOptions options;
    if (tls) options.tls = good_certificate();
    Child child([&](Line& line) { echo(line, options); });
    Party a = tcp_party("parent", options);
    const Connection connection = a->connect({child.line().hear()}).value();
    child.line().say(a->address().text);
    const Bytes sent = pattern(kLong, 1);
    Bytes received(kLong);
    const OperationId receiving = a.receive(connection.peer, tag(2), view(received));
    const OperationId sentinel = a.receive(connection.peer, tag(4), MemoryView{});
    a.expect_done(a.send(connection.peer, tag(1), view(sent)), kLong);
    a.expect_done(receiving, kLong);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(a->traffic(connection.peer), (Traffic{1, kLong, 1, kLong}));
    child.kill();
    a.expect_failed(sentinel, core::Errc::peer_lost, "/child");
  }
}

// A process that is stopped is not lost before its time, and continues where it was.
TEST(TcpFlow, StoppedProcessContinuesWhereItWas) {
  Child child([](Line& line) { echo(line, {}); });
  Party a = tcp_party("parent");
  const Connection connection = a->connect({child.line().hear()}).value();
  child.line().say(a->address().text);
  a.expect_done(connection.established, 0);
  const Bytes sent = pattern(kLong, 1);
  Bytes received(kLong);
  const OperationId receiving = a.receive(connection.peer, tag(2), view(received));
  child.stop();
  const OperationId sending = a.send(connection.peer, tag(1), view(sent));
  EXPECT_EQ(a.untaken(), 0u);
  child.signal(SIGCONT);
  a.expect_done(sending, kLong);
  a.expect_done(receiving, kLong);
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace troupe::transport::testing
