// Checksums on a device: those of the xxHash library, at every length and alignment, several at once, and on a device that fails.
#include "gpu/stream_checksum.hpp"

#include <cstring>
#include <future>

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/device/host_launch.hpp"
#include "gpu/kernels/bodies/checksum.hpp"

namespace troupe::gpu::testing {
namespace {

std::vector<unsigned char> random_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<unsigned char> bytes(count);
  for (auto& byte : bytes) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<unsigned char>(seed >> 56);
  }
  return bytes;
}

std::future<core::Result<std::uint64_t>> sum_of(StreamChecksum& checksum, const void* data, std::size_t bytes) {
  auto promise = std::make_shared<std::promise<core::Result<std::uint64_t>>>();
  checksum.sum(static_cast<const std::byte*>(data), bytes,
               [promise](core::Result<std::uint64_t> sum) { promise->set_value(std::move(sum)); });
  return promise->get_future();
}

/// Device memory with these bytes at its beginning.
core::Buffer on_device(Device& device, const std::vector<unsigned char>& bytes) {
  const std::size_t floats = bytes.size() / sizeof(float) + 1;
  auto there = core::Buffer::allocate(device.memory(), floats).value();
  auto here = core::Buffer::allocate(device.pinned(), floats).value();
  std::memcpy(here.data(), bytes.data(), bytes.size());
  const auto stream = device.make_stream().value();
  EXPECT_TRUE(stream->copy_to_device(there.data(), here.data(), bytes.size()));
  EXPECT_TRUE(stream->synchronize());
  return there;
}

TEST(Xxh3, IsTheLibrarysAtEveryLengthAndAlignmentInBothThreadOrders) {
  const auto bytes = random_bytes(40'000, 1);
  std::vector<std::uint64_t> scratch(xxh3_scratch(40'000) + 1);
  for (const std::size_t length : {241, 255, 256, 1023, 1024, 1025, 1026, 1087, 1088, 1089, 2048, 2049, 4097, 9 * 1024,
                                   9 * 1024 + 1, 33 * 1024, 33 * 1024 + 7, 39'990})
    for (std::size_t shift = 0; shift < 9; ++shift)
      for (const auto order : {host::ThreadOrder::ascending, host::ThreadOrder::descending}) {
        std::uint64_t found = 0;
        scratch.back() = 77;
        host::execute(Xxh3{bytes.data() + shift, scratch.data(), &found, static_cast<std::int64_t>(length)}, order);
        ASSERT_EQ(found, XXH3_64bits(bytes.data() + shift, length)) << length << " bytes from " << shift;
        ASSERT_EQ(scratch.back(), 77U);
      }
}

TEST(Xxh3, KeepsHighProducts) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  EXPECT_EQ(folded_product(kMost, kMost), (kMost - 1) ^ 1);  // (2^64 − 1)² = (2^64 − 2) · 2^64 + 1
  EXPECT_EQ(folded_product(std::uint64_t{1} << 63, 6), 3U);
}

TEST(StreamChecksum, SumsManyMessagesUnderEverySchedule) {
  for (const auto seed : {std::optional<std::uint64_t>{}, {1}, {2}}) {
    const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.schedule_seed = seed, .hides_memory = true});
    StreamChecksum checksum(device);
    std::vector<core::Buffer> there;
    std::vector<std::uint64_t> want;
    std::vector<std::future<core::Result<std::uint64_t>>> found;
    for (std::size_t i = 0; i < 200; ++i) {
      const auto bytes = random_bytes(241 + 97 * i, i);
      want.push_back(XXH3_64bits(bytes.data(), bytes.size()));
      there.push_back(on_device(*device, bytes));
    }
    for (std::size_t i = 0; i < there.size(); ++i) found.push_back(sum_of(checksum, there[i].data(), 241 + 97 * i));
    for (std::size_t i = 0; i < there.size(); ++i) ASSERT_EQ(found[i].get().value(), want[i]) << i;
  }
}

TEST(StreamChecksum, EndsEverySumBeforeItEnds) {
  const auto device = std::make_shared<HostDevice>();
  const auto there = on_device(*device, random_bytes(5000, 3));
  std::vector<std::future<core::Result<std::uint64_t>>> found;
  {
    StreamChecksum checksum(device);
    for (int i = 0; i < 300; ++i) found.push_back(sum_of(checksum, there.data(), 5000));
  }
  for (auto& sum : found) {
    ASSERT_EQ(sum.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    EXPECT_TRUE(sum.get());
  }
}

TEST(StreamChecksum, TellsEveryFailureAndSumsAgainAfterIt) {
  HostDevice host;
  const auto bytes = random_bytes(5000, 4);
  const auto there = on_device(host, bytes);
  for (const auto kind : {CallKind::stream, CallKind::allocation, CallKind::pinned_allocation, CallKind::launch,
                          CallKind::copy, CallKind::synchronize}) {
    const auto device = std::make_shared<FaultyDevice>(host);
    StreamChecksum checksum(device);
    device->set(Fault{.kind = kind});
    const auto failed = sum_of(checksum, there.data(), 5000).get();
    ASSERT_FALSE(failed) << to_string(kind);
    EXPECT_EQ(failed.error().code, core::Errc::io) << to_string(kind);
    EXPECT_EQ(sum_of(checksum, there.data(), 5000).get().value(), XXH3_64bits(bytes.data(), bytes.size()));
  }
}

TEST(StreamChecksum, RefusesMemoryThatIsNotTheDevices) {
  const auto device = std::make_shared<HostDevice>();
  StreamChecksum checksum(device);
  const auto bytes = random_bytes(5000, 5);
  EXPECT_EQ(sum_of(checksum, bytes.data(), bytes.size()).get().error().code, core::Errc::io);
}

}  // namespace
}  // namespace troupe::gpu::testing
