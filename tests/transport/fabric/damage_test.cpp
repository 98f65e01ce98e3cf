// What ucx and mpi do with damaged bytes, over a fabric that damages them.
#include <map>
#include <optional>

#include "core/random.hpp"
#include "loop_fabric.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/fabric/endpoint.hpp"
#include "transport/fabric/frame.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::size_t kHead = 72;

class FabricDamage : public ::testing::Test {
 protected:
  Party party(const std::string& name, bool checks = true) {
    const EndpointKind kind{.name = "loop", .meeting_place = {}, .make = [this](const EndpointOptions& options) {
                              return std::make_unique<FabricEndpoint>("loop", net_->make(), options);
                            }};
    return {kind, {.name = name, .secret = "run", .check_within_host = checks}, clock_};
  }
  /// Flips one bit of the first frame of this kind.
  void damage(FrameKind kind, std::size_t byte, unsigned bit) {
    net_->set([kind, byte, bit, done = false](Bytes& frame) mutable {
      if (done || parse(frame)->head.kind != kind || byte >= frame.size()) return 1;
      frame[byte] ^= std::byte{1} << bit;
      done = true;
      return 1;
    });
  }

  const core::SteadyClock clock_;
  std::shared_ptr<LoopNet> net_ = std::make_shared<LoopNet>();
};

// A short message, a long one, a withdrawn one: every kind of frame between two connected members. Every operation ends with the
// right bytes or an error, and no test deadline passes.
TEST_F(FabricDamage, FlippedBitInAnyFrameIsAnErrorOrHarmless) {
  const Bytes brief = pattern(100, 1), lengthy = pattern(10'000, 2);
  for (const auto kind : {FrameKind::offer, FrameKind::accept, FrameKind::sum, FrameKind::done, FrameKind::withdraw,
                          FrameKind::withdrawn}) {
    const std::size_t size = kHead + (kind == FrameKind::offer ? brief.size() : 0);
    for (std::size_t byte = 0; byte < size; ++byte) {
      SCOPED_TRACE(::testing::Message() << "kind " << static_cast<unsigned>(kind) << ", byte " << byte);
      Party a = party("a"), b = party("b");
      const Pair pair = join(a, b);
      damage(kind, byte, static_cast<unsigned>(byte % 8));
      const OperationId sentinel = b.receive(pair.a_at_b, tag(9), MemoryView{});
      Bytes got_brief(brief.size()), got_lengthy(lengthy.size());
      const auto send = [&](std::uint32_t with, const Bytes& bytes) {
        return a->send(pair.b_at_a, tag(with), view(bytes)).value_or(std::nullopt);
      };
      const auto receive = [&](std::uint32_t with, Bytes& into) -> std::optional<OperationId> {
        const auto operation = b->receive(pair.a_at_b, tag(with), view(into));
        return operation ? std::optional(*operation) : std::nullopt;
      };
      const auto withdrawn = send(3, brief);
      if (withdrawn) a->cancel(*withdrawn);
      const auto brief_in = receive(1, got_brief), brief_out = send(1, brief);
      const auto lengthy_in = receive(2, got_lengthy), lengthy_out = send(2, lengthy);
      for (const auto& sent : {withdrawn, brief_out, lengthy_out})
        if (sent) (void)a.finish(*sent);
      const auto check = [&](std::optional<OperationId> received, const Bytes& got, const Bytes& expected) {
        const bool done = received && b.finish(*received).outcome == Outcome::done;
        ASSERT_TRUE(!done || got == expected);
      };
      ASSERT_NO_FATAL_FAILURE(check(brief_in, got_brief, brief));
      ASSERT_NO_FATAL_FAILURE(check(lengthy_in, got_lengthy, lengthy));
      b.expect_failed(sentinel, core::Errc::peer_lost, "/a");
    }
  }
}

// The receiver of a damaged hello fails its connection with an error; the other side keeps waiting, as for a member that has not connected.
TEST_F(FabricDamage, FlippedBitInAHelloFailsOnlyThatConnection) {
  const Bytes sent = pattern(100, 1);
  for (std::size_t byte = 0; byte < kHead + 15; ++byte) {  // the body: a 4-byte length, "loop:m1/a" and the secret
    SCOPED_TRACE(byte);
    Party a = party("a"), b = party("b");
    const Connection lost = b->connect(a->address()).value();
    damage(FrameKind::hello, byte, static_cast<unsigned>(byte % 8));
    const Connection at_a = a->connect(b->address()).value();
    b.expect_failed(lost.established, core::Errc::peer_lost, "damaged");
    const Connection at_b = b->connect(a->address()).value();
    const OperationId sending = a.send(at_a.peer, tag(1), view(sent));
    Bytes received(sent.size());
    b.expect_done(b.receive(at_b.peer, tag(1), view(received)), sent.size());
    a.expect_done(sending, sent.size());
    a.expect_done(at_a.established, 0);
    ASSERT_EQ(received, sent);
  }
}

TEST_F(FabricDamage, AFlippedBitInAGoodbyeLeavesNoMemberWaiting) {
  for (std::size_t byte = 0; byte < kHead + 15; ++byte) {
    SCOPED_TRACE(byte);
    Party a = party("a"), b = party("b");
    const Pair pair = join(a, b);
    damage(FrameKind::goodbye, byte, static_cast<unsigned>(byte % 8));
    const OperationId waiting = b.receive(pair.a_at_b, tag(1), MemoryView{});
    a->close();
    b.expect_failed(waiting, core::Errc::peer_lost, "/a");
  }
}

TEST_F(FabricDamage, DamagedShortMessageIsCorruptAndEndsTheConnection) {
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  damage(FrameKind::offer, kHead + 50, 3);
  Bytes received(100), other(100);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
  const OperationId waiting = b.receive(pair.a_at_b, tag(2), view(other));
  const Bytes sent = pattern(100, 1);
  const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
  const Completion corrupt = b.finish(receiving);
  EXPECT_EQ(corrupt.error.code, core::Errc::corrupt);
  EXPECT_NE(corrupt.error.message.find(to_string(tag(1))), std::string::npos) << corrupt.error.message;
  EXPECT_NE(corrupt.error.message.find("/a: bytes were damaged on the way"), std::string::npos);
  b.expect_failed(waiting, core::Errc::peer_lost, "damaged");
  a.expect_failed(sending, core::Errc::peer_lost, "bytes from you were damaged");
  const Pair again = join(a, b);
  const OperationId second = a.send(again.b_at_a, tag(1), view(sent));
  b.expect_done(b.receive(again.a_at_b, tag(1), view(received)), sent.size());
  a.expect_done(second, sent.size());
  EXPECT_EQ(received, sent);
}

TEST_F(FabricDamage, FlippedBitInALongMessageIsCorrupt) {
  core::Random random(1, core::Purpose::test, 0);
  const Bytes sent = pattern(20'000, 1);
  Party a = party("a"), b = party("b");
  for (int round = 0; round < 100; ++round) {
    const std::size_t bit = random.below(8 * sent.size());
    const Pair pair = join(a, b);
    net_->set([bit](std::span<std::byte> payload) { payload[bit / 8] ^= std::byte{1} << (bit % 8); });
    Bytes received(sent.size());
    const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
    const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
    b.expect_failed(receiving, core::Errc::corrupt, to_string(tag(1)));
    a.expect_failed(sending, core::Errc::peer_lost, "damaged");
    EXPECT_EQ(b->traffic(pair.a_at_b), Traffic{});
  }
}

// Between processes of one host a long message stays in memory, so it needs no checksum.
TEST_F(FabricDamage, LongMessagesWithinAHostCarryNoChecksum) {
  int sums = 0;
  net_->set([&](Bytes& frame) { return sums += parse(frame)->head.kind == FrameKind::sum, 1; });
  const Bytes sent = pattern(20'000, 1);
  for (const bool checks : {false, true}) {
    Party a = party("a", checks), b = party("b", false);  // one side that wants it is enough
    const Pair pair = join(a, b);
    Bytes received(sent.size());
    const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
    b.expect_done(b.receive(pair.a_at_b, tag(1), view(received)), sent.size());
    a.expect_done(sending, sent.size());
    EXPECT_EQ(received, sent);
    EXPECT_EQ(sums, checks ? 1 : 0);
  }
}

// The receiver cannot tell whose frame it was; the number of the next frame shows that one is missing.
TEST_F(FabricDamage, LostRepeatedOrGarbledFrameIsDetected) {
  const auto wipe = [](Bytes& frame) { return frame.assign(frame.size(), std::byte{0xaa}), 1; };
  const auto drop = [](Bytes&) { return 0; };
  const auto repeat = [](Bytes&) { return 2; };
  for (const std::function<int(Bytes&)>& harm : {std::function<int(Bytes&)>(wipe), {drop}, {repeat}}) {
    Party a = party("a"), b = party("b");
    const Pair pair = join(a, b);
    net_->set([&, done = false](Bytes& frame) mutable { return std::exchange(done, true) ? 1 : harm(frame); });
    const Bytes sent = pattern(10, 1);
    Bytes received(10), other(10);
    const OperationId receiving = b.receive(pair.a_at_b, tag(7), view(received));
    const OperationId lost = a.send(pair.b_at_a, tag(1), view(sent));
    const OperationId next = a.send(pair.b_at_a, tag(2), view(sent));
    b.expect_failed(receiving, core::Errc::peer_lost, "did not arrive");
    for (const OperationId operation : {lost, next})
      a.expect_failed(operation, core::Errc::peer_lost, "did not arrive");
    net_->set([](Bytes&) { return 1; });
  }
}

}  // namespace
}  // namespace troupe::transport::testing
