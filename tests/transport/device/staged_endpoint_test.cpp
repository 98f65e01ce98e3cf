// What staging guarantees beyond the contract. endpoint_*_test.cpp run the contract over inproc and tcp with a FakeDevice.
#include "transport/device/staged_endpoint.hpp"

#include <deque>
#include <optional>

#include "core/random.hpp"
#include "fake_device.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/inproc/endpoint.hpp"

namespace troupe::transport::testing {
namespace {

const EndpointKind kInproc{"inproc", {}};

class Staged : public ::testing::Test {
 protected:
  Party party(const std::string& name, bool staged = true, std::size_t staging_bytes = 1 << 20) {
    return {kInproc,
            {.name = name, .hub = hub_, .device = staged ? device_ : nullptr, .staging_bytes = staging_bytes},
            clock_};
  }

  const core::SteadyClock clock_;
  const std::shared_ptr<InprocHub> hub_ = make_inproc_hub("test");
  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
};

TEST_F(Staged, OneSideMayUseHostMemory) {
  Party a = party("a"), b = party("b", false);
  const Pair pair = join(a, b);
  EXPECT_TRUE(a->capabilities().takes(core::MemorySpace::device));
  EXPECT_FALSE(b->capabilities().takes(core::MemorySpace::device));
  for (const std::size_t size : {1u, 4096u, 100'001u}) {
    const Bytes there = pattern(size, 1), back = pattern(size, 2);
    Bytes got_there(size), got_back(size);
    const OperationId at_b = b.receive(pair.a_at_b, tag(1), view(got_there));
    const OperationId at_a = a.receive(pair.b_at_a, tag(2), on_device(view(got_back)));
    a.expect_done(a.send(pair.b_at_a, tag(1), on_device(view(there))), size);
    b.expect_done(at_b, size);
    b.expect_done(b.send(pair.a_at_b, tag(2), view(back)), size);
    a.expect_done(at_a, size);
    EXPECT_EQ(got_there, there);
    EXPECT_EQ(got_back, back);
  }
}

// A signal from host memory follows data of the same tag from device memory, whose copy takes time.
TEST_F(Staged, MessagesWithoutACopyDoNotOvertake) {
  core::Random random(1, core::Purpose::test, 0);
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  constexpr std::size_t kMessages = 60;
  std::deque<Bytes> sent, received;
  std::vector<OperationId> sending, receiving;
  device_->hold();
  for (unsigned i = 0; i < kMessages; ++i) {
    sent.push_back(pattern(100, i));
    received.emplace_back(100);
    const ConstMemoryView from = view(std::as_const(sent.back()));
    const MemoryView to = view(received.back());
    sending.push_back(a.send(pair.b_at_a, tag(1), random.below(2) == 0 ? from : on_device(from)));
    receiving.push_back(b.receive(pair.a_at_b, tag(1), random.below(2) == 0 ? to : on_device(to)));
  }
  device_->release();
  for (unsigned i = 0; i < kMessages; ++i) {
    a.expect_done(sending[i], 100);
    b.expect_done(receiving[i], 100);
    EXPECT_EQ(received[i], sent[i]) << i;
  }
}

TEST_F(Staged, ASendCancelledDuringItsCopyIsNeverDeliveredAndDelaysNoOther) {
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  const Bytes withdrawn = pattern(100, 1), sent = pattern(100, 2);
  device_->hold();
  const OperationId copying = a.send(pair.b_at_a, tag(1), on_device(view(withdrawn)));
  const OperationId queued = a.send(pair.b_at_a, tag(1), view(withdrawn));
  const OperationId kept = a.send(pair.b_at_a, tag(1), view(sent));
  a->cancel(queued);
  a.expect_cancelled(queued);
  a->cancel(copying);
  EXPECT_EQ(a.untaken(), 0u);  // the device has its memory
  device_->release();
  a.expect_cancelled(copying);
  Bytes received(100);
  b.expect_done(b.receive(pair.a_at_b, tag(1), on_device(view(received))), 100);
  a.expect_done(kept, 100);
  EXPECT_EQ(received, sent);
}

TEST_F(Staged, ACopyThatFailsEndsItsOperationAndNothingElse) {
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(100, 1);
  Bytes received(100);
  const OperationId landing = b.receive(pair.a_at_b, tag(1), on_device(view(received)));
  device_->fail({core::Errc::io, "the device is on fire"});
  a.expect_failed(a.send(pair.b_at_a, tag(2), on_device(view(sent))), core::Errc::io, "on fire");
  a.expect_done(a.send(pair.b_at_a, tag(1), view(sent)), 100);
  b.expect_failed(landing, core::Errc::io, "on fire");
  const OperationId plain = b.receive(pair.a_at_b, tag(3), view(received));
  a.expect_done(a.send(pair.b_at_a, tag(3), view(sent)), 100);
  b.expect_done(plain, 100);
  EXPECT_EQ(received, sent);
}

TEST_F(Staged, CloseWaitsForCopiesAndGivesEverythingBack) {
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(100, 1);
  device_->hold();
  std::vector<OperationId> sending;
  for (std::uint32_t i = 0; i < 10; ++i) {
    sending.push_back(a.send(pair.b_at_a, tag(i), on_device(view(sent))));
    sending.push_back(a.send(pair.b_at_a, tag(i), view(sent)));
  }
  std::thread later([this] { device_->release(); });
  a->close();
  EXPECT_EQ(a.untaken(), sending.size());
  for (const OperationId operation : sending) a.expect_cancelled(operation);
  later.join();
}

TEST_F(Staged, BuffersAreBoundedAndUsedAgain) {
  Party a = party("a", true, 64 << 10), b = party("b", false);
  const Pair pair = join(a, b);
  const Bytes large(32 << 10), too_large((64 << 10) + 1);
  EXPECT_EQ(a->send(pair.b_at_a, tag(1), on_device(view(too_large))).error().code, core::Errc::out_of_memory);
  for (int round = 0; round < 5; ++round) {
    const OperationId first = a.send(pair.b_at_a, tag(1), on_device(view(large)));
    Bytes in(32 << 10);
    const OperationId second = a.receive(pair.b_at_a, tag(1), on_device(view(in)));
    const auto third = a->receive(pair.b_at_a, tag(2), on_device(view(in)));
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code, core::Errc::out_of_memory);
    EXPECT_NE(third.error().message.find("65536"), std::string::npos) << third.error().message;
    Bytes received(32 << 10);
    b.expect_done(b.receive(pair.a_at_b, tag(1), view(received)), received.size());
    b.expect_done(b.send(pair.a_at_b, tag(1), view(large)), large.size());
    a.expect_done(first, large.size());
    a.expect_done(second, large.size());
  }
}

TEST_F(Staged, APeerLostDuringACopyFailsTheSendAndIsNamed) {
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(100, 1);
  device_->hold();
  const OperationId copying = a.send(pair.b_at_a, tag(1), on_device(view(sent)));
  b->close();
  device_->release();
  a.expect_failed(copying, core::Errc::peer_lost, "/b");
}

}  // namespace
}  // namespace troupe::transport::testing
