// Faults of networks and of peers: every fault is noticed, named and bounded, and costs only that peer.
#include <sys/socket.h>

#include "core/random.hpp"
#include "peers.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::size_t kLongVector = std::size_t{1} << 20;

TcpOptions options_with_faults() { return {.listen = "127.0.0.2:0"}; }

struct Flipped {
  std::size_t at;    // of the caller's stream, after the hello
  std::size_t size;  // of the message
};

// One byte of the caller's stream is flipped: no wrong data is delivered, and both sides notice.
TEST(TcpFaults, AFlippedByteIsNoticedWhereverItIs) {
  core::Random random(1, core::Purpose::test, 0);
  for (unsigned round = 0; round < 30; ++round) {
    const std::size_t size = round % 2 == 0 ? 1000 : kLongVector;
    // The hello of the caller takes some 200 bytes; the message follows.
    const std::size_t at = 400 + random.below(size - 300);
    Party b = tcp_party("b", behind_proxy());
    const Proxy proxy(b, [&](std::size_t from, std::byte* bytes, std::size_t count) {
      if (at >= from && at < from + count) bytes[at - from] ^= std::byte{1};
      return true;
    });
    Party a = tcp_party("a");
    const Pair pair = join(a, b);
    const Bytes sent = pattern(size, round);
    Bytes received(size);
    const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
    const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
    const Completion got = b.finish(receiving);
    EXPECT_EQ(got.outcome, Outcome::failed) << at;
    EXPECT_TRUE(got.error.code == core::Errc::corrupt || got.error.code == core::Errc::peer_lost);
    EXPECT_NE(got.error.message.find("damaged"), std::string::npos) << got.error.message;
    EXPECT_NE(got.error.message.find("/a"), std::string::npos) << got.error.message;
    a.expect_failed(sending, core::Errc::peer_lost, "/b");
    EXPECT_EQ(b->receive(pair.a_at_b, tag(1), view(received)).error().code, core::Errc::peer_lost);
    a->close();
    b->close();  // ends the proxy
  }
}

TEST(TcpFaults, DamagedPayloadIsCorruptAndTheRestIsLost) {
  Party b = tcp_party("b", behind_proxy());
  const Proxy proxy(b, [](std::size_t from, std::byte* bytes, std::size_t count) {
    constexpr std::size_t kAt = 500'000;
    if (kAt >= from && kAt < from + count) bytes[kAt - from] ^= std::byte{0x80};
    return true;
  });
  Party a = tcp_party("a");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(kLongVector, 1);
  Bytes received(kLongVector), other(10);
  const OperationId idle = b.receive(pair.a_at_b, tag(2), view(other));
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
  a.send(pair.b_at_a, tag(1), view(sent));
  b.expect_failed(receiving, core::Errc::corrupt, "/a");
  b.expect_failed(idle, core::Errc::peer_lost, "damaged");
  a->close();
  b->close();
}

TEST(TcpFaults, APeerThatFallsSilentIsLost) {
  TcpOptions options = options_with_faults();
  options.heartbeat = std::chrono::milliseconds{400};
  options.lost_after = std::chrono::milliseconds{2000};  // also for the handshake
  Party a = tcp_party("a", options);
  RawPeer peer(a);
  const OperationId receiving = a.receive(peer.at_party, tag(1), MemoryView{});
  a.expect_failed(receiving, core::Errc::peer_lost, "nothing was heard");
}

// Every frame that is invalid at its time. The connection ends with the reason, and nothing else happens.
TEST(TcpFaults, InvalidFramesEndTheConnectionWithTheReason) {
  const auto one = static_cast<std::uint64_t>(tag(1));
  const auto frame = [](Frame f, std::size_t payload = 0) { return std::pair{f, payload}; };
  const std::vector<std::vector<std::pair<Frame, std::size_t>>> cases{
      {frame({.type = FrameType::hello}, 10)},
      {frame({.type = FrameType::ready})},
      {frame({.type = FrameType::chunk, .message = 1}, 10)},
      {frame({.type = FrameType::done, .message = 1})},
      {frame({.type = FrameType::done, .message = 2})},
      {frame({.type = FrameType::want, .message = 99})},
      {frame({.type = FrameType::withdrawn, .message = 1})},
      {frame({.type = FrameType::mismatch, .message = 17})},
      {frame({.type = FrameType::want, .message = 1}), frame({.type = FrameType::want, .message = 1})},
      {frame({.type = FrameType::want, .message = 1}), frame({.type = FrameType::mismatch, .message = 1})},
      {frame({.type = FrameType::offer, .message = 0, .tag = one, .size = 1}, 1)},
      {frame({.type = FrameType::offer, .message = 1, .tag = one, .size = 20}, 10)},
      {frame({.type = FrameType::offer, .message = 2, .tag = 7, .size = 10}, 10),
       frame({.type = FrameType::offer, .message = 2, .tag = 7, .size = 10}, 10)},
      // One chunk too many, out of place, or empty, of the message that the receive below takes.
      {frame({.type = FrameType::offer, .message = 1, .tag = one, .size = 100'000}),
       frame({.type = FrameType::chunk, .message = 1, .size = 0}, 100'001)},
      {frame({.type = FrameType::offer, .message = 1, .tag = one, .size = 100'000}),
       frame({.type = FrameType::chunk, .message = 1, .size = 5}, 10)},
      {frame({.type = FrameType::offer, .message = 1, .tag = one, .size = 100'000}),
       frame({.type = FrameType::chunk, .message = 1, .size = 0}, 0)},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Party a = tcp_party("a", options_with_faults());
    RawPeer peer(a);
    Bytes received(100'000);
    const Bytes sent = pattern(kLongVector, 1);
    const OperationId receiving = a.receive(peer.at_party, tag(1), view(received));
    const OperationId sending = a.send(peer.at_party, tag(1), view(sent));  // message 1: long, so it waits for want
    EXPECT_EQ(peer.socket.read_frame().type, FrameType::offer);
    for (const auto& [f, payload] : cases[i]) peer.socket.write(f, Bytes(payload));
    a.expect_failed(receiving, core::Errc::peer_lost, "it broke the protocol");
    a.expect_failed(sending, core::Errc::peer_lost, "/raw");
    EXPECT_TRUE(peer.socket.ends()) << i;
  }
}

TEST(TcpFaults, APeerThatExceedsItsWindowIsLost) {
  Party a = tcp_party("a", options_with_faults(), {.messages = 4, .bytes = 40'000});
  for (const bool bytes : {false, true}) {
    RawPeer peer(a);
    const OperationId idle = a.receive(peer.at_party, tag(9), MemoryView{});
    const std::size_t size = bytes ? 15'000 : 10;
    for (std::uint64_t i = 1; i <= (bytes ? 3u : 5u); ++i)
      peer.socket.write({.type = FrameType::offer, .message = i, .tag = 1, .size = size}, Bytes(size));
    a.expect_failed(idle, core::Errc::peer_lost, "window");
  }
}

TEST(TcpFaults, RandomFramesDoNoHarm) {
  core::Random random(2, core::Purpose::test, 0);
  for (unsigned round = 0; round < 50; ++round) {
    Party a = tcp_party("a", options_with_faults());
    RawPeer peer(a);
    Bytes received(100);
    const OperationId receiving = a.receive(peer.at_party, tag(1), view(received));
    const Bytes sent = pattern(50'000, round);
    const OperationId sending = a.send(peer.at_party, tag(1), view(sent));
    for (unsigned i = 0; i < 40; ++i) {
      const auto type = static_cast<FrameType>(4 + random.below(11));
      const bool has_payload = type == FrameType::offer || type == FrameType::chunk || type == FrameType::bye;
      const std::size_t payload = has_payload ? random.below(200) : 0;
      FrameBytes header = encode({.type = type,
                                  .length = static_cast<std::uint32_t>(payload),
                                  .message = random.below(4),
                                  .tag = static_cast<std::uint64_t>(tag(static_cast<std::uint32_t>(random.below(2)))),
                                  .size = random.below(2) == 0 ? payload : random.below(200)});
      Bytes bytes(header.begin(), header.end());
      bytes.resize(bytes.size() + payload);
      if (::send(peer.socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;  // it has hung up
    }
    // Invalid at any time: whatever came before, the party does not wait for more.
    const FrameBytes last = encode({.type = FrameType::hello});
    (void)::send(peer.socket.descriptor(), last.data(), last.size(), MSG_NOSIGNAL);
    EXPECT_NE(a.finish(receiving).outcome, Outcome::cancelled);
    EXPECT_EQ(a.finish(sending).outcome, Outcome::failed);
  }
}

}  // namespace
}  // namespace troupe::transport::testing
