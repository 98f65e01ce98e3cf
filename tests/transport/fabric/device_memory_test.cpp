// Device memory that a library takes itself: what goes straight, and what is staged. The FakeDevice's addresses are none of the host: what reads
// them without a copy dies.
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "loop_fabric.hpp"
#include "tests/transport/child.hpp"
#include "tests/transport/device/fake_device.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "tests/transport/fabric/taking_fabric.hpp"
#include "tests/wait.hpp"
#include "transport/common/module.hpp"
#include "transport/device/staged_endpoint.hpp"
#include "transport/fabric/endpoint.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::size_t kLong = 100'001;
constexpr std::size_t kBrief = 4096;  // travels in a frame

class FabricDeviceMemory : public ::testing::Test {
 protected:
  Party party(const std::string& name, bool checks = false, std::shared_ptr<core::DeviceChecksum> checksum = {}) {
    const auto make = [this](const EndpointOptions& options) -> core::Result<std::unique_ptr<Endpoint>> {
      return std::make_unique<FabricEndpoint>("loop", net_->make(), options);
    };
    const EndpointKind kind{.name = "loop", .meeting_place = {}, .make = [make](const EndpointOptions& options) {
                              return make_staged_endpoint(make, options).value();
                            }};
    return {
        kind, {.name = name, .check_within_host = checks, .device = device_, .checksum = std::move(checksum)}, clock_};
  }
  /// Sends `size` bytes from device to device. The copies that it took.
  unsigned copies_of(Party& a, Party& b, const Pair& pair, std::size_t size) {
    const Bytes there = pattern(size, static_cast<unsigned>(size));
    Bytes got(size);
    const unsigned before = device_->copies();
    const OperationId at_b = b.receive(pair.a_at_b, tag(1), on_device(view(got)));
    a.expect_done(a.send(pair.b_at_a, tag(1), on_device(view(there))), size);
    b.expect_done(at_b, size);
    EXPECT_EQ(got, there);
    return device_->copies() - before;
  }

  /// Two members that check their messages, as between hosts, and sum them on their devices.
  void take_and_check() {
    net_->take_device();
    device_->make_known();
  }

  const std::shared_ptr<FakeChecksum> sums_at_a_ = std::make_shared<FakeChecksum>();
  const std::shared_ptr<FakeChecksum> sums_at_b_ = std::make_shared<FakeChecksum>();
  const core::SteadyClock clock_;
  const std::shared_ptr<LoopNet> net_ = std::make_shared<LoopNet>();
  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
};

/// A long message from a's device to b's, under way. Its memory lives as long as this.
struct UnderWay {
  UnderWay(Party& a, Party& b, const Pair& pair)
      : at_b(b.receive(pair.a_at_b, tag(1), on_device(view(got)))),
        at_a(a.send(pair.b_at_a, tag(1), on_device(view(there)))) {}
  const Bytes there = pattern(kLong, 1);
  Bytes got = Bytes(kLong);
  const OperationId at_b, at_a;
};

TEST_F(FabricDeviceMemory, LongMessagesGoStraightAndShortOnesAreStaged) {
  net_->take_device();
  device_->make_known();
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  EXPECT_EQ(copies_of(a, b, pair, kLong), 0U);
  EXPECT_EQ(net_->device_transfers(), 2U);
  EXPECT_EQ(copies_of(a, b, pair, kBrief), 2U);
  EXPECT_EQ(copies_of(a, b, pair, kBrief + 1), 0U);
}

TEST_F(FabricDeviceMemory, IsStagedWhereTheLibraryOrTheDeviceIsAnother) {
  for (const bool library : {false, true}) {
    if (library) net_->take_device();
    Party a = party("a"), b = party("b");
    const Pair pair = join(a, b);
    EXPECT_EQ(copies_of(a, b, pair, kLong), 2U);
  }
  EXPECT_EQ(net_->device_transfers(), 0U);
}

// Messages between hosts are checked as a whole: the host reads them, unless the device sums them.
TEST_F(FabricDeviceMemory, IsStagedWhereMessagesAreCheckedAndTheDeviceDoesNotSumThem) {
  net_->take_device();
  device_->make_known();
  Party a = party("a", true), b = party("b", true);
  const Pair pair = join(a, b);
  EXPECT_EQ(copies_of(a, b, pair, kLong), 2U);
  EXPECT_EQ(net_->device_transfers(), 0U);
}

TEST_F(FabricDeviceMemory, GoesStraightBetweenHostsWhereDevicesSumTheMessages) {
  take_and_check();
  Party a = party("a", true, sums_at_a_), b = party("b", true, sums_at_b_);
  const Pair pair = join(a, b);
  EXPECT_EQ(copies_of(a, b, pair, kLong), 0U);
  EXPECT_EQ(net_->device_transfers(), 2U);
  EXPECT_EQ(sums_at_a_->ended(), 1U);
  EXPECT_EQ(sums_at_b_->ended(), 1U);
  EXPECT_EQ(copies_of(a, b, pair, kBrief), 2U);
}

// The sum is the host's, so each end may take either way.
TEST_F(FabricDeviceMemory, OneEndMayStageBetweenHosts) {
  take_and_check();
  Party a = party("a", true, sums_at_a_), b = party("b", true);
  const Pair pair = join(a, b);
  EXPECT_EQ(copies_of(a, b, pair, kLong), 1U);
  EXPECT_EQ(copies_of(b, a, {.b_at_a = pair.a_at_b, .a_at_b = pair.b_at_a}, kLong), 1U);
  EXPECT_EQ(net_->device_transfers(), 2U);
}

TEST_F(FabricDeviceMemory, DamageIsFoundByTheReceiversDevice) {
  take_and_check();
  Party a = party("a", true, sums_at_a_), b = party("b", true, sums_at_b_);
  const Pair pair = join(a, b);
  net_->set([](std::span<std::byte> payload) { payload[payload.size() / 2] ^= std::byte{1}; });
  const UnderWay message(a, b, pair);
  b.expect_failed(message.at_b, core::Errc::corrupt, "/a");
  a.expect_failed(message.at_a, core::Errc::peer_lost, "/b");
}

/// Waits until the checksum has begun `count` sums.
void await(const FakeChecksum& sums, unsigned count) {
  ASSERT_TRUE(tests::eventually([&] { return sums.begun() >= count; }));
}

TEST_F(FabricDeviceMemory, IsLentUntilTheDeviceHasSummedItWhateverElseEnds) {
  take_and_check();
  Party a = party("a", true, sums_at_a_), b = party("b", true, sums_at_b_);
  const Pair pair = join(a, b);
  sums_at_b_->hold();
  const UnderWay message(a, b, pair);
  await(*sums_at_b_, 1);
  b->cancel(message.at_b);  // too late: it is matched
  const OperationId other = b.receive(pair.a_at_b, tag(2), MemoryView{});
  b->disconnect(pair.a_at_b, "the test says so");
  b.expect_failed(other, core::Errc::peer_lost, "the test says so");
  EXPECT_EQ(b.untaken(), 0U) << "the device reads the memory of the first one";
  sums_at_b_->release();
  b.expect_failed(message.at_b, core::Errc::peer_lost, "the test says so");
  a.expect_failed(message.at_a, core::Errc::peer_lost, "the test says so");
}

TEST_F(FabricDeviceMemory, IsLentToTheSendersDeviceToo) {
  take_and_check();
  Party a = party("a", true, sums_at_a_), b = party("b", true, sums_at_b_);
  const Pair pair = join(a, b);
  sums_at_a_->hold();
  const UnderWay message(a, b, pair);
  await(*sums_at_a_, 1);
  const OperationId other = a.receive(pair.b_at_a, tag(2), MemoryView{});
  a->cancel(message.at_a);
  b.destroy();
  a.expect_failed(other, core::Errc::peer_lost, "/b");
  EXPECT_EQ(a.untaken(), 0U) << "the device reads the memory of the send";
  sums_at_a_->release();
  a.expect_failed(message.at_a, core::Errc::peer_lost, "/b");
}

TEST_F(FabricDeviceMemory, ADeviceThatCannotSumEndsTheOperationWithItsErrorAndThePeerLearnsOfIt) {
  for (const bool sender : {true, false}) {
    SCOPED_TRACE(sender);
    take_and_check();
    const auto sums = std::make_shared<FakeChecksum>(), broken = std::make_shared<FakeChecksum>();
    broken->fail({core::Errc::io, "the device is on fire"});
    Party a = party("a", true, sender ? broken : sums), b = party("b", true, sender ? sums : broken);
    const Pair pair = join(a, b);
    const UnderWay message(a, b, pair);
    (sender ? a : b).expect_failed(sender ? message.at_a : message.at_b, core::Errc::io, "on fire");
    (sender ? b : a).expect_failed(sender ? message.at_b : message.at_a, core::Errc::peer_lost, "the device failed");
  }
}

TEST_F(FabricDeviceMemory, AnEndpointClosesWhenItsDeviceHasEndedItsSums) {
  take_and_check();
  Party a = party("a", true, sums_at_a_), b = party("b", true, sums_at_b_);
  const Pair pair = join(a, b);
  sums_at_b_->hold();
  const UnderWay message(a, b, pair);
  await(*sums_at_b_, 1);
  std::thread closing([&] { b->close(); });
  a.expect_failed(message.at_a, core::Errc::peer_lost, "/b");  // so it has begun to
  EXPECT_EQ(b.untaken(), 0U) << "the device reads the memory";
  sums_at_b_->release();
  closing.join();
  EXPECT_EQ(sums_at_b_->ended(), 1U);
  b.expect_cancelled(message.at_b);
}

TEST_F(FabricDeviceMemory, OneEndMayBeHostMemory) {
  net_->take_device();
  device_->make_known();
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  const Bytes there = pattern(kLong, 3);
  Bytes got(kLong);
  const OperationId at_b = b.receive(pair.a_at_b, tag(1), view(got));
  a.expect_done(a.send(pair.b_at_a, tag(1), on_device(view(there))), kLong);
  b.expect_done(at_b, kLong);
  EXPECT_EQ(got, there);
  EXPECT_EQ(net_->device_transfers(), 1U);
  EXPECT_EQ(device_->copies(), 0U);
}

TEST_F(FabricDeviceMemory, OfALostPeerIsAnErrorAsOtherMemory) {
  net_->take_device();
  device_->make_known();
  Party a = party("a"), b = party("b");
  const Pair pair = join(a, b);
  Bytes got(kLong);
  const OperationId waiting = a.receive(pair.b_at_a, tag(1), on_device(view(got)));
  b.destroy();
  a.expect_failed(waiting, core::Errc::peer_lost, "/b");
  a.expect_failed(a.send(pair.b_at_a, tag(2), on_device(view(std::as_const(got)))), core::Errc::peer_lost, "/b");
}

/// A member of a run between hosts, over UCX, whose library takes device memory.
struct UcxMember {
  std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>();
  std::shared_ptr<std::atomic<unsigned>> straight = std::make_shared<std::atomic<unsigned>>(0);
  std::shared_ptr<FakeChecksum> sums = std::make_shared<FakeChecksum>();
  core::SteadyClock clock;
  std::optional<Party> party;

  explicit UcxMember(const std::string& name) {
    device->make_known();
    const EndpointKind kind{.name = "ucx", .meeting_place = {}, .make = [this](const EndpointOptions& options) {
                              return make_taking_endpoint("ucx", options, straight);
                            }};
    party.emplace(kind,
                  EndpointOptions{.name = name,
                                  .secret = "run",
                                  .ucx_transports = ucx_transports_between_hosts(),
                                  .check_within_host = true,
                                  .device = device,
                                  .checksum = sums},
                  clock);
  }
};

constexpr std::size_t kPieces = (std::size_t{9} << 20) + 3;  // three of UCX's, and an odd end

/// Sends back what comes, from its device's memory.
void echo(Line& line) {
  UcxMember child("child");
  Party& party = *child.party;
  line.say(party->address().text);
  const Connection connection = party->connect({line.hear()}).value();
  (void)party.finish(connection.established);
  Bytes memory(kPieces);
  for (std::uint32_t round = 0; round < 3; ++round) {
    (void)party.finish(party.receive(connection.peer, tag(round), on_device(view(memory))));
    (void)party.finish(party.send(connection.peer, tag(round), on_device(view(std::as_const(memory)))));
  }
  line.say(std::to_string(child.device->copies()));
  (void)line.hear();
}

TEST(UcxDeviceMemory, GoesStraightBetweenProcessesAndIsChecked) {
  if (!find_module("ucx")) GTEST_SKIP() << "this build has no endpoint ucx";
  Child process(echo);
  UcxMember self("parent");
  Party& party = *self.party;
  const Connection connection = party->connect({process.line().hear()}).value();
  process.line().say(party->address().text);
  party.expect_done(connection.established, 0);
  for (std::uint32_t round = 0; round < 3; ++round) {
    const Bytes sent = pattern(kPieces, round);
    Bytes back(kPieces);
    const OperationId receiving = party.receive(connection.peer, tag(round), on_device(view(back)));
    party.expect_done(party.send(connection.peer, tag(round), on_device(view(sent))), kPieces);
    party.expect_done(receiving, kPieces);
    EXPECT_EQ(back, sent);
  }
  EXPECT_EQ(self.straight->load(), 6U);
  EXPECT_EQ(self.sums->ended(), 6U);
  EXPECT_EQ(self.device->copies(), 0U);
  EXPECT_EQ(process.line().hear(), "0");
  process.line().say("enough");
}

TEST(UcxDeviceMemory, OfAKilledPeerComesBack) {
  if (!find_module("ucx")) GTEST_SKIP() << "this build has no endpoint ucx";
  Child process([](Line& line) {
    UcxMember child("child");
    line.say((*child.party)->address().text);
    const Connection connection = (*child.party)->connect({line.hear()}).value();
    (void)child.party->finish(connection.established);
    Bytes memory(kPieces);
    for (std::uint32_t i = 0;; ++i) {
      if (child.party->finish(child.party->receive(connection.peer, tag(i), on_device(view(memory)))).outcome !=
          Outcome::done)
        return;
      if (i == 1) line.say("in full swing");
    }
  });
  UcxMember self("parent");
  Party& party = *self.party;
  const Connection connection = party->connect({process.line().hear()}).value();
  process.line().say(party->address().text);
  party.expect_done(connection.established, 0);
  Bytes sent = pattern(kPieces, 1);
  std::vector<OperationId> sending;
  for (std::uint32_t i = 0; i < 6; ++i)
    sending.push_back(party.send(connection.peer, tag(i), on_device(view(std::as_const(sent)))));
  EXPECT_EQ(process.line().hear(), "in full swing");
  process.kill();
  for (const OperationId operation : sending) (void)party.finish(operation);
  EXPECT_EQ(party.untaken(), 0U);
  EXPECT_EQ(self.sums->begun(), self.sums->ended());
  sent.assign(sent.size(), std::byte{0});
}

}  // namespace
}  // namespace troupe::transport::testing
