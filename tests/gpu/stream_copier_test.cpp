// Copies by the threads of a copier: both directions, in order, late, and on a device that fails.
#include "gpu/stream_copier.hpp"

#include <future>

#include <gtest/gtest.h>

#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

std::byte* bytes_of(core::Buffer& buffer) { return reinterpret_cast<std::byte*>(buffer.data()); }

core::Result<void> copied(StreamCopier& copier, core::Buffer& to, core::Buffer& from, bool to_host) {
  std::promise<core::Result<void>> done;
  auto result = done.get_future();
  const auto tell = [&done](core::Result<void> end) { done.set_value(std::move(end)); };
  if (to_host)
    copier.to_host(bytes_of(to), bytes_of(from), to.size() * sizeof(float), tell);
  else
    copier.to_device(bytes_of(to), bytes_of(from), to.size() * sizeof(float), tell);
  return result.get();
}

TEST(StreamCopier, CopiesThereAndBackUnderEverySchedule) {
  for (const auto seed : {std::optional<std::uint64_t>{}, {1}, {2}}) {
    const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.schedule_seed = seed, .hides_memory = true});
    StreamCopier copier(device);
    auto there = core::Buffer::allocate(device->memory(), 1000).value();
    auto here = core::Buffer::allocate(copier.pinned(), 1000).value();
    const auto want = random_floats(1000, 1.0, 5);
    std::ranges::copy(want, here.data());
    ASSERT_TRUE(copied(copier, there, here, false));
    std::ranges::fill(here.view(), -1.F);
    ASSERT_TRUE(copied(copier, here, there, true));
    EXPECT_TRUE(std::ranges::equal(here.view(), want));
  }
}

TEST(StreamCopier, EndsTheCopiesOfADirectionInTheirOrderAndBeforeItEnds) {
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.schedule_seed = 3});
  auto there = core::Buffer::allocate(device->memory(), 64).value();
  auto here = core::Buffer::allocate(device->pinned(), 64).value();
  std::vector<int> ended;
  {
    StreamCopier copier(device);
    for (int i = 0; i < 200; ++i)
      copier.to_host(bytes_of(here), bytes_of(there), 256, [&ended, i](const core::Result<void>& end) {
        EXPECT_TRUE(end);
        ended.push_back(i);
      });
  }
  ASSERT_EQ(ended.size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(ended));
}

TEST(StreamCopier, TellsAFailedCopy) {
  for (const auto kind : {CallKind::stream, CallKind::copy, CallKind::synchronize}) {
    SCOPED_TRACE(to_string(kind));
    HostDevice host;
    const auto device = std::make_shared<FaultyDevice>(host);
    StreamCopier copier(device);
    auto there = core::Buffer::allocate(device->memory(), 16).value();
    auto here = core::Buffer::allocate(copier.pinned(), 16).value();
    device->set(Fault{.kind = kind, .number = 1, .code = core::Errc::out_of_memory});
    const auto failed = copied(copier, there, here, false);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, core::Errc::io) << "a copy knows no other error";
    EXPECT_TRUE(copied(copier, there, here, false)) << "the next one works again";
  }
}

}  // namespace
}  // namespace troupe::gpu::testing
