// Device memory that a library takes itself: what goes straight, and what is staged. The FakeDevice's addresses are none of the host: what reads
// them without a copy dies.
#include "loop_fabric.hpp"
#include "tests/transport/device/fake_device.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/device/staged_endpoint.hpp"
#include "transport/fabric/endpoint.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::size_t kLong = 100'001;
constexpr std::size_t kBrief = 4096;  // travels in a frame

class FabricDeviceMemory : public ::testing::Test {
 protected:
  Party party(const std::string& name, bool checks = false) {
    const auto make = [this](const EndpointOptions& options) -> core::Result<std::unique_ptr<Endpoint>> {
      return std::make_unique<FabricEndpoint>("loop", net_->make(), options);
    };
    const EndpointKind kind{.name = "loop", .meeting_place = {}, .make = [make](const EndpointOptions& options) {
                              return make_staged_endpoint(make, options).value();
                            }};
    return {kind, {.name = name, .check_within_host = checks, .device = device_}, clock_};
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

  const core::SteadyClock clock_;
  const std::shared_ptr<LoopNet> net_ = std::make_shared<LoopNet>();
  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
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

// Messages between hosts are checked as a whole: the host reads them.
TEST_F(FabricDeviceMemory, IsStagedWhereMessagesAreChecked) {
  net_->take_device();
  device_->make_known();
  Party a = party("a", true), b = party("b", true);
  const Pair pair = join(a, b);
  EXPECT_EQ(copies_of(a, b, pair, kLong), 2U);
  EXPECT_EQ(net_->device_transfers(), 0U);
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

}  // namespace
}  // namespace troupe::transport::testing
