// Copies of any length through two pinned pieces, executed at once and later.
#include "gpu/staging.hpp"

#include <gtest/gtest.h>

#include "gpu/device/host_device.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

TEST(Staging, CopiesThereAndBackWhateverTheLengthAndTheSchedule) {
  for (const auto seed : {std::optional<std::uint64_t>{}, {1}, {2}, {3}}) {
    HostDevice device(HostDeviceOptions{.schedule_seed = seed});
    const auto stream = device.make_stream().value();
    for (const std::size_t piece : {64U, 1024U}) {  // bytes
      const auto staging = Staging::make(device, piece).value();
      for (const std::size_t floats : {1U, 15U, 16U, 17U, 32U, 33U, 1000U}) {
        auto memory = core::Buffer::allocate(device.memory(), floats).value();
        auto values = random_floats(floats, 1.0, floats);
        const auto want = values;
        ASSERT_TRUE(staging->upload(*stream, memory.data(), values.data(), floats * sizeof(float)));
        std::ranges::fill(values, -1.0F);  // the caller's memory is free again
        ASSERT_TRUE(staging->download(*stream, values.data(), memory.data(), floats * sizeof(float)));
        EXPECT_EQ(values, want) << floats;
      }
    }
    ASSERT_TRUE(stream->synchronize());
  }
}

TEST(Staging, UploadsThatFollowEachOtherAreAllThere) {
  HostDevice device(HostDeviceOptions{.schedule_seed = 4});
  const auto stream = device.make_stream().value();
  const auto staging = Staging::make(device, 64).value();
  auto memory = core::Buffer::allocate(device.memory(), 320).value();
  std::vector<float> want;
  for (std::size_t i = 0; i < 20; ++i) {
    const auto values = random_floats(16, 1.0, i);
    want.insert(want.end(), values.begin(), values.end());
    ASSERT_TRUE(staging->upload(*stream, memory.data() + i * 16, values.data(), 64));
  }
  std::vector<float> got(320);
  ASSERT_TRUE(staging->download(*stream, got.data(), memory.data(), 320 * sizeof(float)));
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace troupe::gpu::testing
