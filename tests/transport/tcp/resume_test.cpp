// A broken connection costs nothing: the session continues over another one, with its own peer only.
#include <sys/socket.h>

#include <map>
#include <thread>

#include "breaker.hpp"
#include "core/random.hpp"
#include "transport/common/wire_hash.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::size_t kNever = SIZE_MAX;
constexpr core::Duration kPatience = std::chrono::seconds{60};

TcpOptions resume_options() { return {.listen = "127.0.0.2:0"}; }

TcpOptions short_options() {
  TcpOptions options = resume_options();
  options.heartbeat = std::chrono::milliseconds{200};
  options.lost_after = std::chrono::milliseconds{2000};  // also for the handshake
  return options;
}

// Message k of one side has a tag and a length that both sides know, and bytes that no other message has.
constexpr std::size_t kMessages = 200;
constexpr std::size_t kLengths[] = {0, 1, 100, kEagerBytes, kEagerBytes + 1, kChunkBytes, 3 * kChunkBytes + 7, 5000};

std::size_t length_of(std::size_t k) { return kLengths[(k * 5 + k / 8) % std::size(kLengths)]; }
Tag tag_of(std::size_t k) { return tag(static_cast<std::uint32_t>(k % 7)); }
Bytes message(std::size_t k, unsigned side) { return pattern(length_of(k), static_cast<unsigned>(1000 * side + k)); }

/// Sends all and receives all messages as credit allows, and checks every completion. One thread.
void work(Party& party, Peer peer, unsigned side) {
  std::vector<Bytes> out, in;
  for (std::size_t k = 0; k < kMessages; ++k) {
    out.push_back(message(k, side));
    in.emplace_back(length_of(k));
  }
  std::map<OperationId, std::size_t> sending, receiving;
  std::size_t sent = 0, posted = 0;
  while (sent < kMessages || posted < kMessages || !sending.empty() || !receiving.empty()) {
    for (OperationId started{};
         sent < kMessages && party.try_send(peer, tag_of(sent), view(std::as_const(out[sent])), &started);)
      sending.emplace(started, sent++);
    for (; posted < kMessages && receiving.size() < 10; ++posted)
      receiving.emplace(party.receive(peer, tag_of(posted), view(in[posted])), posted);
    std::vector<Completion> completions;
    ASSERT_TRUE(party.queue().wait(completions, after(core::SteadyClock{}, kPatience)));
    for (const Completion& c : completions) {
      ASSERT_EQ(c.outcome, Outcome::done) << c.error.message;
      if (sending.erase(c.operation) == 1) continue;
      const auto found = receiving.find(c.operation);
      ASSERT_NE(found, receiving.end()) << "completed twice";
      const std::size_t k = found->second;
      EXPECT_EQ(c.bytes, length_of(k));
      EXPECT_TRUE(in[k] == message(k, 1 - side)) << "message " << k << " of side " << 1 - side;
      receiving.erase(found);
    }
  }
}

class TcpResume : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, TcpResume, ::testing::Bool(), [](const auto& info) { return info.param ? "Tls" : "Plain"; });

// Connections are reset at any byte of either direction, in hellos, headers and payload, while both sides send.
TEST_P(TcpResume, EverythingArrivesOnceInOrderHoweverOftenTheConnectionIsReset) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    core::Random random(seed, core::Purpose::test, 0);
    std::mutex mutex;
    int budget = 150;
    TcpOptions options;
    if (GetParam()) options.tls = good_certificate();
    BrokenPair members(options, {.messages = 16, .bytes = std::size_t{2} << 20}, [&] {
      const std::lock_guard lock(mutex);
      if (--budget < 0) return kNever;
      // From the first bytes of a hello to several chunks.
      const std::size_t most = std::size_t{1} << (6 + random.below(16));
      return 1 + static_cast<std::size_t>(random.below(most));
    });
    std::thread other([&] { work(members.b, members.pair.a_at_b, 1); });
    work(members.a, members.pair.b_at_a, 0);
    other.join();
    Traffic expected{.messages_sent = kMessages, .messages_received = kMessages};
    for (std::size_t k = 0; k < kMessages; ++k) expected.bytes_sent += length_of(k);
    expected.bytes_received = expected.bytes_sent;
    EXPECT_EQ(members.a->traffic(members.pair.b_at_a), expected);
    EXPECT_EQ(members.b->traffic(members.pair.a_at_b), expected);
    EXPECT_EQ(members.a.untaken() + members.b.untaken(), 0u);
    EXPECT_GT(members.resets(), 10u);
  }
}

TEST_P(TcpResume, OperationsArePostedAndCancelledDuringAnOutage) {
  TcpOptions options;
  if (GetParam()) options.tls = good_certificate();
  BrokenPair members(options, {}, [] { return kNever; });
  auto& [a, b, to_a, to_b, pair] = members;
  const Bytes small = pattern(100, 1), large = pattern(1 << 20, 2);
  const OperationId offered = a.send(pair.b_at_a, tag(1), view(small));
  const OperationId unwanted = a.send(pair.b_at_a, tag(2), view(large));
  exchange(a, pair.b_at_a, b, pair.a_at_b);  // the earlier messages have arrived
  Bytes received(100), received_large(large.size()), ignored(100);
  const OperationId waiting = b.receive(pair.a_at_b, tag(3), view(ignored));

  members.hold();
  b->cancel(waiting);
  b.expect_cancelled(waiting);
  b.expect_done(b.receive(pair.a_at_b, tag(1), view(received)), 100);  // it had already arrived
  const OperationId withdrawn = a.send(pair.b_at_a, tag(3), view(small));
  for (const OperationId operation : {offered, unwanted, withdrawn}) a->cancel(operation);
  const OperationId sending = a.send(pair.b_at_a, tag(4), view(large));
  const OperationId receiving = b.receive(pair.a_at_b, tag(4), view(received_large));
  members.release();

  a.expect_done(offered, 100);
  a.expect_cancelled(unwanted);
  a.expect_cancelled(withdrawn);
  a.expect_done(sending, large.size());
  b.expect_done(receiving, large.size());
  EXPECT_TRUE(received == small);
  EXPECT_TRUE(received_large == large);
  exchange(a, pair.b_at_a, b, pair.a_at_b);
  EXPECT_EQ(a.untaken() + b.untaken(), 0u);
  EXPECT_GE(members.resets(), 1u);
}

// No side closes, but no byte gets through any more: each end notices the loss by itself.
TEST_P(TcpResume, AnOutageThatLastsLosesThePeerAtBothEnds) {
  TcpOptions options;
  options.heartbeat = std::chrono::milliseconds{100};
  options.lost_after = std::chrono::milliseconds{1000};
  if (GetParam()) options.tls = good_certificate();
  BrokenPair members(options, {}, [] { return kNever; });
  const OperationId at_a = members.a.receive(members.pair.b_at_a, tag(1), MemoryView{});
  const OperationId at_b = members.b.receive(members.pair.a_at_b, tag(1), MemoryView{});
  members.hold();
  members.a.expect_failed(at_a, core::Errc::peer_lost, "was not mended");
  members.b.expect_failed(at_b, core::Errc::peer_lost, "was not mended");
  members.release();
  members.pair = join(members.a, members.b);  // they connect as new peers
  exchange(members.a, members.pair.b_at_a, members.b, members.pair.a_at_b);
}

// A peer that closes during an outage cannot report it. The other side, when it dials, is refused or finds no listener.
TEST_P(TcpResume, PeerThatClosesDuringAnOutageIsLost) {
  for (const bool all : {false, true}) {
    TcpOptions options;
    if (GetParam()) options.tls = good_certificate();
    BrokenPair members(options, {}, [] { return kNever; });
    const OperationId at_a = members.a.receive(members.pair.b_at_a, tag(1), MemoryView{});
    const OperationId at_b = members.b.receive(members.pair.a_at_b, tag(1), MemoryView{});
    members.hold();
    if (all)
      members.b->close();
    else
      members.b->disconnect(members.pair.a_at_b, "it is late");
    EXPECT_NE(members.b.finish(at_b).outcome, Outcome::done);
    members.release();
    members.a.expect_failed(at_a, core::Errc::peer_lost, all ? "/b" : "it is late");
  }
}

/// Expects that the present connection carries its first message.
void expect_goes_on(Party& a, RawPeer& peer) {
  Bytes received(3);
  const OperationId receiving = a.receive(peer.at_party, tag(1), view(received));
  peer.socket.write({.type = FrameType::offer, .message = 1, .tag = static_cast<std::uint64_t>(tag(1)), .size = 3},
                    Bytes(3));
  a.expect_done(receiving, 3);
}

// By hand: the hello of the second connection, and the frames that are sent again.
TEST(TcpResumeByHand, UnreceivedFramesAreSentAgain) {
  const Bytes sent = pattern(50, 1);  // lent until the endpoint ends
  Party a = tcp_party("a", resume_options());
  RawPeer peer(a);
  std::vector<OperationId> sending;
  for (std::uint32_t i = 0; i < 3; ++i) sending.push_back(a.send(peer.at_party, tag(i), view(sent)));
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(peer.socket.read_frame().message, i);
  peer.socket.write({.type = FrameType::offer, .message = 1, .tag = 7, .size = 3, .ack = 1}, Bytes(3));
  peer.socket.write({.type = FrameType::done, .message = 1, .ack = 1});
  a.expect_done(sending[0], 50);  // so the endpoint also has the offer before it
  peer.socket.reset();
  auto [again, hello] = peer.answer();
  EXPECT_EQ(hello.connection, 2u);
  EXPECT_TRUE(hello.token == peer.party_says.token);
  EXPECT_TRUE(hello.peer_token == RawPeer::kToken);
  EXPECT_EQ(hello.received, 2u);
  Hello welcome = peer.next(2, 1);  // one of three written frames has arrived
  again.write({.type = FrameType::welcome}, encode(welcome));
  EXPECT_EQ(again.read_frame().type, FrameType::ready);
  for (std::uint64_t i = 2; i <= 3; ++i) {
    const Frame frame = again.read_frame();
    EXPECT_EQ(frame.type, FrameType::offer);
    EXPECT_EQ(frame.message, i);
    EXPECT_EQ(frame.length, 50u);
    EXPECT_EQ(frame.ack, 2u);
  }
}

TEST(TcpResumeByHand, AReceiveWhoseMessageWasCutIsFreeAgain) {
  Party a = tcp_party("a", resume_options());
  RawPeer peer(a);
  Bytes first(100), second(100);
  const Bytes sent = pattern(100, 1);
  const OperationId cut = a.receive(peer.at_party, tag(1), view(first));
  const OperationId next = a.receive(peer.at_party, tag(1), view(second));
  const Frame offer{.type = FrameType::offer,
                    .length = 100,
                    .message = 1,
                    .tag = static_cast<std::uint64_t>(tag(1)),
                    .size = 100,
                    .payload_hash = wire_hash(sent)};
  const FrameBytes header = encode(offer);
  peer.socket.write(header.data(), header.size());
  peer.socket.write(sent.data(), 50);
  peer.socket.reset();
  auto [again, hello] = peer.answer();
  EXPECT_EQ(hello.received, 0u);
  a->cancel(cut);
  a.expect_cancelled(cut);
  again.write({.type = FrameType::welcome}, encode(peer.next(2, 0)));
  EXPECT_EQ(again.read_frame().type, FrameType::ready);
  again.write({.type = FrameType::offer, .message = 1, .tag = offer.tag, .size = 100}, sent);
  a.expect_done(next, 100);
  EXPECT_TRUE(second == sent);
}

TEST(TcpResumeByHand, AWrongTokenIsRefusedAndChangesNothing) {
  Refusals refusals;
  TcpOptions options = resume_options();
  options.on_refused = refusals.hook();
  Party a = tcp_party("a", options);
  RawPeer peer(a);
  const std::uint16_t port = parse_tcp_address(a->address().text)->at.port;
  for (const bool mine : {false, true}) {
    Hello hello = peer.next(2, 0);
    (mine ? hello.token : hello.peer_token).bytes[15] ^= std::byte{1};
    RawSocket thief = RawSocket::connect("127.0.0.2", port);
    thief.write({.type = FrameType::hello}, encode(hello));
    const Frame answer = thief.read_frame();
    EXPECT_EQ(answer.type, FrameType::refuse);
    EXPECT_EQ(answer.message, static_cast<std::uint64_t>(RefuseCode::over));
    EXPECT_TRUE(thief.ends());
    EXPECT_NE(refusals.wait_for(mine ? 2 : 1).back().why.find("token"), std::string::npos);
  }
  // A caller that claims to begin a new session is told to wait.
  RawSocket other = RawSocket::connect("127.0.0.2", port);
  Hello anew = peer.next(1, 0);
  anew.peer_token = {};
  anew.token.bytes[15] ^= std::byte{1};
  other.write({.type = FrameType::hello}, encode(anew));
  EXPECT_EQ(other.read_frame().message, static_cast<std::uint64_t>(RefuseCode::later));
  EXPECT_NE(refusals.wait_for(3).back().why.find("first connection"), std::string::npos);

  expect_goes_on(a, peer);
}

// Both sides have dialled. The caller whose connection was not taken closes it; the other side may read its bytes only after that.
TEST(TcpResumeByHand, AnOvertakenFirstConnectionIsNotReported) {
  Refusals refusals;
  TcpOptions options = resume_options();
  options.on_refused = refusals.hook();
  Party a = tcp_party("a", options);
  RawPeer peer(a);
  const std::uint16_t port = parse_tcp_address(a->address().text)->at.port;
  RawSocket overtaken = RawSocket::connect("127.0.0.2", port);
  overtaken.write({.type = FrameType::hello}, RawPeer::hello(peer.party_says.to, a->address().text));
  EXPECT_TRUE(overtaken.ends());
  RawSocket garbage = RawSocket::connect("127.0.0.2", port);
  garbage.write({.type = FrameType::ready});
  EXPECT_NE(refusals.wait_for(1).front().why.find("did not say hello"), std::string::npos)
      << "the first to be reported";

  expect_goes_on(a, peer);
}

TEST(TcpResumeByHand, ALaterConnectionTakesThePlaceOfOneThatIsHalfDead) {
  Party a = tcp_party("a", resume_options());
  RawPeer peer(a);
  const std::uint16_t port = parse_tcp_address(a->address().text)->at.port;
  const Bytes sent = pattern(50, 1);
  const OperationId sending = a.send(peer.at_party, tag(1), view(sent));
  EXPECT_EQ(peer.socket.read_frame().type, FrameType::offer);
  // A dial for the first connection is too late; one for the second is accepted.
  RawSocket late = RawSocket::connect("127.0.0.2", port);
  late.write({.type = FrameType::hello}, encode(peer.next(1, 0)));
  EXPECT_TRUE(late.ends());
  RawSocket next = RawSocket::connect("127.0.0.2", port);
  next.write({.type = FrameType::hello}, encode(peer.next(2, 1)));
  EXPECT_EQ(next.read_frame().type, FrameType::welcome);
  EXPECT_TRUE(peer.socket.ends());
  next.write({.type = FrameType::ready});
  next.write({.type = FrameType::done, .message = 1, .ack = 1});
  a.expect_done(sending, 50);
}

TEST(TcpResumeByHand, InvalidCountsLoseThePeer) {
  Party a = tcp_party("a", resume_options());
  RawPeer peer(a);
  const OperationId idle = a.receive(peer.at_party, tag(1), MemoryView{});
  peer.socket.reset();
  auto [again, hello] = peer.answer();
  again.write({.type = FrameType::welcome}, encode(peer.next(2, 5)));
  a.expect_failed(idle, core::Errc::peer_lost, "invalid count of 5 frames");
}

// The peer listens and never answers, or its process has ended.
TEST(TcpResumeByHand, AResetWithoutAReconnectLosesThePeer) {
  for (const bool listens : {true, false}) {
    Party a = tcp_party("a", short_options());
    RawPeer peer(a);
    const OperationId idle = a.receive(peer.at_party, tag(1), MemoryView{});
    if (!listens) (void)::shutdown(peer.listening.descriptor(), SHUT_RDWR);
    peer.socket.reset();
    a.expect_failed(idle, core::Errc::peer_lost, "/raw");
  }
}

}  // namespace
}  // namespace troupe::transport::testing
