#include "gpu/device/host_device.hpp"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

namespace troupe::gpu {
namespace {

template <class T>
T value_of(core::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Floats of a device, or pinned.
struct Floats {
  core::Allocator& allocator;
  std::size_t count;
  float* data;
  Floats(core::Allocator& from, std::size_t floats)
      : allocator(from), count(floats), data(static_cast<float*>(value_of(from.allocate(floats * sizeof(float))))) {}
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() { allocator.deallocate(data, count * sizeof(float)); }
  [[nodiscard]] std::size_t bytes() const { return count * sizeof(float); }
};

HostDeviceOptions later(std::uint64_t seed) { return {.schedule_seed = seed}; }

TEST(HostDevice, MemoryIsZeroAlignedCountedAndLimited) {
  HostDevice device({.memory = 1000});
  {
    const Floats a(device.memory(), 100);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data) % 256, 0U);
    EXPECT_EQ(a.data[99], 0.0F);
    EXPECT_EQ(device.live_bytes(), 400U);
    const auto refused = device.memory().allocate(601);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, core::Errc::out_of_memory);
  }
  EXPECT_EQ(device.live_bytes(), 0U);
}

TEST(HostDevice, CopiesNameMemoryOfTheRightKind) {
  HostDevice device;
  const Floats there(device.memory(), 8);
  const Floats here(device.pinned(), 8);
  const auto stream = value_of(device.make_stream());
  EXPECT_TRUE(stream->copy_to_device(there.data, here.data, 32));
  EXPECT_FALSE(stream->copy_to_device(there.data, here.data, 33));
  EXPECT_FALSE(stream->copy_to_device(here.data, there.data, 32));
  EXPECT_FALSE(stream->copy_to_host(here.data, there.data + 4, 20));
  EXPECT_FALSE(stream->zero(here.data, 4));
  EXPECT_FALSE(stream->copy(there.data, here.data, 4));
}

TEST(HostDevice, ReachesTheMemoryOfAnotherOnlyAfterItWasAsked) {
  HostDevice device;
  HostDevice peer;
  const Floats here(device.memory(), 8);
  const Floats there(peer.memory(), 8);
  const auto stream = value_of(device.make_stream());
  EXPECT_FALSE(stream->copy(here.data, there.data, 32));
  EXPECT_FALSE(stream->launch(Fill{there.data, 3, 8}));
  EXPECT_TRUE(value_of(device.reach(peer)));
  EXPECT_TRUE(stream->launch(Fill{there.data, 3, 8}));
  EXPECT_TRUE(stream->copy(here.data, there.data, 32));
  EXPECT_EQ(here.data[7], 3.0F);
  EXPECT_FALSE(stream->copy(here.data, there.data, 36)) << "beyond the peer's allocation";
  const auto other = value_of(peer.make_stream());
  EXPECT_FALSE(other->copy(there.data, here.data, 32)) << "the peer was not asked";
}

TEST(HostDevice, CapturedStepsAreExecutedAtEachLaunchOnly) {
  HostDevice device;
  const Floats x(device.memory(), 4);
  const auto stream = value_of(device.make_stream());
  const auto event = value_of(device.make_event());
  value_of(stream->launch(Fill{x.data, 1, 4}));
  value_of(stream->begin_capture());
  value_of(stream->launch(Scale{x.data, 2, 4}));
  EXPECT_FALSE(stream->synchronize());
  EXPECT_FALSE(stream->record(*event));
  EXPECT_FALSE(stream->begin_capture());
  const auto graph = value_of(stream->end_capture());
  EXPECT_FALSE(stream->end_capture());
  EXPECT_EQ(x.data[0], 1.0F);
  value_of(stream->launch(*graph));
  value_of(stream->launch(*graph));
  EXPECT_EQ(x.data[3], 4.0F);
}

/// Producer and consumer on two streams. With an event every order gives the same; without one some seed shows it.
float consumed(std::uint64_t seed, bool with_event) {
  HostDevice device(later(seed));
  const Floats x(device.memory(), 4);
  const Floats y(device.memory(), 4);
  const Floats result(device.pinned(), 4);
  const auto producer = value_of(device.make_stream());
  const auto consumer = value_of(device.make_stream());
  const auto event = value_of(device.make_event());
  value_of(producer->launch(Fill{x.data, 3, 4}));
  value_of(producer->record(*event));
  if (with_event) value_of(consumer->wait(*event));
  value_of(consumer->launch(Axpy{y.data, x.data, 1, 4}));
  value_of(consumer->copy_to_host(result.data, y.data, result.bytes()));
  value_of(consumer->synchronize());
  return result.data[0];
}

TEST(HostDevice, RandomSchedulesRespectEventsAndShowMissingOnes) {
  std::set<float> with;
  std::set<float> without;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    with.insert(consumed(seed, true));
    without.insert(consumed(seed, false));
  }
  EXPECT_EQ(with, std::set<float>{3});
  EXPECT_EQ(without, (std::set<float>{0, 3}));
}

/// A wait is for the record before it: a later record of the same event is not waited for, and not needed.
TEST(HostDevice, WaitIsForTheLatestRecordBeforeIt) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    HostDevice device(later(seed));
    const Floats x(device.memory(), 1);
    const auto first = value_of(device.make_stream());
    const auto second = value_of(device.make_stream());
    const auto event = value_of(device.make_event());
    value_of(second->wait(*event));  // never recorded: does not block
    value_of(first->launch(Fill{x.data, 1, 1}));
    value_of(first->record(*event));
    value_of(second->wait(*event));
    value_of(second->launch(Scale{x.data, 5, 1}));
    value_of(second->record(*event));
    value_of(first->wait(*event));
    value_of(first->launch(Axpy{x.data, x.data, 1, 1}));
    value_of(first->synchronize());
    EXPECT_EQ(x.data[0], 10.0F);
  }
}

TEST(HostDevice, PinnedMemoryIsReadWhenTheCopyIsExecuted) {
  std::set<float> found;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    HostDevice device(later(seed));
    const Floats there(device.memory(), 1);
    const Floats here(device.pinned(), 1);
    const auto stream = value_of(device.make_stream());
    here.data[0] = 1;
    value_of(stream->copy_to_device(there.data, here.data, 4));
    here.data[0] = 2;  // too early: nobody waited
    value_of(stream->synchronize());
    found.insert(there.data[0]);
  }
  EXPECT_EQ(found, (std::set<float>{1, 2}));
}

// As with a device: code that forgets to copy dies in a test, and not only where there is a GPU.
TEST(HostDevice, HiddenMemoryIsForTheDeviceAlone) {
  HostDevice device({.hides_memory = true});
  const Floats x(device.memory(), 16);
  const Floats y(device.memory(), 16);
  const Floats pinned(device.pinned(), 16);
  const auto stream = value_of(device.make_stream());
  value_of(stream->launch(Fill{x.data, 3, 16}));
  value_of(stream->launch(Axpy{y.data + 4, x.data + 4, 2, 12}));
  value_of(stream->copy(x.data, y.data + 4, 4));
  value_of(stream->copy_to_host(pinned.data, x.data, x.bytes()));
  value_of(stream->synchronize());
  EXPECT_EQ(pinned.data[0], 6.0F);
  EXPECT_EQ(pinned.data[5], 3.0F);
  EXPECT_DEATH(x.data[0] = 1, "");
  EXPECT_DEATH(EXPECT_EQ(x.data[0], 6.0F), "");
}

TEST(HostDevice, DestroyedStreamsFinishTheirWork) {
  HostDevice device(later(1));
  const Floats x(device.memory(), 4);
  {
    const auto stream = value_of(device.make_stream());
    for (int i = 0; i < 20; ++i) value_of(stream->launch(Fill{x.data, static_cast<float>(i), 4}));
  }
  EXPECT_EQ(x.data[0], 19.0F);
}

TEST(HostDevice, EnginesKeepToTheWorkspaceAndRefuseWhatLibrariesDoNotFuse) {
  HostDevice device;
  MatrixProduct product{.m = 2, .n = 2, .k = 2};
  const auto both = value_of(device.plans(product, kHostWorkspace));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0]->engine(), "host staged");
  EXPECT_EQ(both[0]->workspace(), kHostWorkspace);
  const auto one = value_of(device.plans(product, kHostWorkspace - 1));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0]->workspace(), 0U);
  Convolution convolution{.shape = {{2, 6, 6, 4}, {2, 6, 6, 8}, 3, 1, 1, 1}, .activation = nn::Activation::relu};
  const auto refused = device.plans(convolution, 0);
  ASSERT_FALSE(refused) << "relu without a bias";
  EXPECT_EQ(refused.error().code, core::Errc::config);
  convolution.bias = true;
  EXPECT_TRUE(device.plans(convolution, 0));

  const Floats memory(device.memory(), 64);
  const auto stream = value_of(device.make_stream());
  const MatrixOperands operands{memory.data, memory.data + 4, memory.data + 8, nullptr};
  EXPECT_TRUE(stream->run(*one[0], operands, nullptr));
  EXPECT_FALSE(stream->run(*both[0], operands, nullptr)) << "a plan got no workspace";
  EXPECT_FALSE(stream->run(*one[0], {memory.data, memory.data + 4, memory.data + 62, nullptr}, nullptr));
  EXPECT_FALSE(stream->run(*one[0], {memory.data, memory.data + 4, memory.data + 9, nullptr}, nullptr))
      << "libraries read 16 bytes at a time";
}

}  // namespace
}  // namespace troupe::gpu
