// The data plane's listener, and frames from a connected peer: hellos and frames changed at random, repeated, cut and out of order.
// Meanwhile two honest members exchange.
#include <sys/socket.h>
#include <sys/time.h>

#include <gtest/gtest.h>

#include "tests/hostile/budget.hpp"
#include "tests/transport/tcp/peers.hpp"
#include "transport/common/wire_hash.hpp"

namespace troupe::hostile {
namespace {

using namespace transport;
using transport::testing::Bytes;
using transport::testing::Party;
using transport::testing::RawPeer;
using transport::testing::RawSocket;

/// Two connected members, on 127.0.0.2.
class HonestPair {
 public:
  HonestPair()
      : a(transport::testing::tcp_party("a", {.listen = "127.0.0.2:0"})),
        b(transport::testing::tcp_party("b", {.listen = "127.0.0.2:0"})),
        met(join(a, b)) {}
  void exchange() { transport::testing::exchange(a, met.b_at_a, b, met.a_at_b); }
  [[nodiscard]] std::uint16_t port() const { return parse_tcp_address(a->address().text)->at.port; }

  Party a, b;
  transport::testing::Pair met;
};

void send_some(const RawSocket& socket, const void* data, std::size_t size) {
  (void)::send(socket.descriptor(), data, size, MSG_NOSIGNAL);
}

Hello some_hello(Dice& dice, const std::string& to) {
  Hello hello = decode_hello(RawPeer::hello("tcp:127.0.0.1:4242/0/raw", to)).value();
  switch (dice.below(9)) {
    case 0: hello.version = dice.number<std::uint32_t>(); break;
    case 1: hello.attempt = dice.number<std::uint64_t>(); break;
    case 2: hello.connection = dice.number<std::uint64_t>(); break;
    case 3: hello.received = dice.number<std::uint64_t>(); break;
    case 4: hello.window = {dice.number<std::uint64_t>(), dice.number<std::uint64_t>()}; break;
    case 5: hello.from = std::string(dice.below(6000), static_cast<char>(dice.bits())); break;
    case 6: hello.to = std::string(dice.below(2000), static_cast<char>(dice.bits())); break;
    case 7: hello.token = {}; break;
    default: break;
  }
  return hello;
}

TEST(HostileTcp, InvalidHellosAreRefused) {
  Dice dice("HostileTcp, greetings");
  HonestPair honest;
  const auto count = messages(2);
  std::uint64_t before = 0;
  for (std::uint64_t said = 0; said < count; ++said) {
    if (said == count / 4) before = resident();
    const auto socket = RawSocket::try_connect("127.0.0.2", honest.port());
    if (!socket.good()) continue;
    auto payload = encode(some_hello(dice, honest.a->address().text));
    std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (dice.one_in(3)) dice.damage(text);
    Frame frame{.type = dice.one_in(3) ? static_cast<FrameType>(dice.number<std::uint8_t>()) : FrameType::hello};
    frame.length = static_cast<std::uint32_t>(text.size());
    if (dice.one_in(6)) frame.length = dice.number<std::uint32_t>();
    if (!dice.one_in(6)) frame.payload_hash = wire_hash(std::as_bytes(std::span(text)));
    const auto header = encode(frame);
    std::string all(reinterpret_cast<const char*>(header.data()), header.size());
    all += text;
    if (dice.one_in(6)) dice.damage(all);
    send_some(socket, all.data(), all.size());
    if (said % 64 == 0) honest.exchange();
  }
  honest.exchange();
  if (before > 0) {
    EXPECT_LT(resident(), before + kMostGrowth);
  }
}

TEST(HostileTcp, ArbitraryFramesOfAConnectedPeerHarmNoOther) {
  Dice dice("HostileTcp, frames");
  const auto count = messages(16);
  std::uint64_t said = 0, before = 0;
  HonestPair honest;
  for (std::uint64_t life = 0; said < count; ++life) {
    if (life == 20) before = resident();
    RawPeer peer(honest.a);
    const timeval limit{5, 0};
    ::setsockopt(peer.socket.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    Bytes landing(5000);
    std::vector<OperationId> receives;
    for (std::uint32_t k = 0; k < 4; ++k)
      receives.push_back(
          honest.a.receive(peer.at_party, transport::testing::tag(k), transport::testing::view(landing)));
    Bytes outgoing(40'000);
    OperationId sending{};
    (void)honest.a.try_send(peer.at_party, transport::testing::tag(1),
                            transport::testing::view(std::as_const(outgoing)), &sending);
    std::uint64_t message = 0;
    for (int k = 0; k < 400 && said < count; ++k, ++said) {
      Frame frame{.type = static_cast<FrameType>(dice.one_in(16) ? dice.number<std::uint8_t>() : 5 + dice.below(9))};
      message += dice.one_in(4) ? 0 : 1;
      frame.message = dice.one_in(8) ? dice.number<std::uint64_t>() : message;
      frame.tag = dice.one_in(8)
                      ? dice.number<std::uint64_t>()
                      : static_cast<std::uint64_t>(transport::testing::tag(static_cast<std::uint32_t>(dice.below(6))));
      Bytes payload(frame.type == FrameType::offer || frame.type == FrameType::chunk ? dice.below(8000) : 0);
      frame.size = dice.one_in(8) ? dice.number<std::uint64_t>() : dice.one_in(2) ? payload.size() : 5000;
      frame.ack = dice.one_in(16) ? dice.number<std::uint64_t>() : dice.below(3);
      frame.length = static_cast<std::uint32_t>(dice.one_in(32) ? dice.number<std::uint32_t>() : payload.size());
      frame.payload_hash = dice.one_in(32) ? dice.bits() : wire_hash(payload);
      const auto header = encode(frame);
      std::string all(reinterpret_cast<const char*>(header.data()), header.size());
      all.append(reinterpret_cast<const char*>(payload.data()), payload.size());
      if (dice.one_in(64)) dice.damage(all);
      if (::send(peer.socket.descriptor(), all.data(), all.size(), MSG_NOSIGNAL) < 0) break;
    }
    honest.exchange();
    honest.a->disconnect(peer.at_party, "enough");
    for (const auto receive : receives) (void)honest.a.finish(receive);
    if (sending != OperationId{}) (void)honest.a.finish(sending);
  }
  honest.exchange();
  if (before > 0) {
    EXPECT_LT(resident(), before + kMostGrowth);
  }
}

}  // namespace
}  // namespace troupe::hostile
