#include "gpu/device/faulty_device.hpp"

#include <gtest/gtest.h>

#include "gpu/device/host_device.hpp"

namespace troupe::gpu {
namespace {

TEST(FaultyDevice, FailsTheCallOfTheNumberAndNoOther) {
  HostDevice host;
  FaultyDevice device(host);
  device.set(Fault{.kind = CallKind::allocation, .number = 2, .code = core::Errc::out_of_memory});
  for (const int call : {1, 2, 3}) {
    const auto memory = device.memory().allocate(64);
    EXPECT_EQ(memory.has_value(), call != 2);
    EXPECT_EQ(device.struck(), call >= 2);
    if (memory)
      device.memory().deallocate(*memory, 64);
    else
      EXPECT_EQ(memory.error().code, core::Errc::out_of_memory);
  }
  EXPECT_EQ(device.calls(CallKind::allocation), 3U);
  EXPECT_EQ(host.live_bytes(), 0U);
}

TEST(FaultyDevice, ALostDeviceFailsEveryLaterCallOfEveryKind) {
  HostDevice host;
  FaultyDevice device(host);
  const auto stream = device.make_stream();
  const auto event = device.make_event();
  ASSERT_TRUE(stream && event);
  device.set(Fault{.kind = CallKind::synchronize, .number = 1, .code = core::Errc::io, .lost = true});
  EXPECT_TRUE((*stream)->record(**event));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ((*stream)->synchronize().error().code, core::Errc::io);
    EXPECT_EQ((*stream)->record(**event).error().code, core::Errc::io);
    EXPECT_EQ(device.make_event().error().code, core::Errc::io);
    EXPECT_EQ(device.pinned().allocate(64).error().code, core::Errc::io);
    EXPECT_EQ(device.plans(MatrixProduct{.m = 1, .n = 1, .k = 1}, 0).error().code, core::Errc::io);
  }
  device.set({});
  EXPECT_TRUE((*stream)->synchronize());
}

TEST(FaultyDevice, AFailedCallDoesNothing) {
  HostDevice host;
  FaultyDevice device(host);
  auto* numbers = static_cast<float*>(*device.memory().allocate(64));
  const auto stream = device.make_stream();
  ASSERT_TRUE(stream);
  device.set(Fault{.kind = CallKind::launch, .number = 1, .code = core::Errc::io});
  EXPECT_FALSE((*stream)->launch(Fill{numbers, 3, 16}));
  EXPECT_EQ(numbers[0], 0);
  EXPECT_TRUE((*stream)->launch(Fill{numbers, 3, 16}));
  EXPECT_EQ(numbers[0], 3);
  device.memory().deallocate(numbers, 64);
}

TEST(FaultyDevice, AStreamWhoseCaptureFailedIsUsableAgain) {
  HostDevice host;
  FaultyDevice device(host);
  auto* numbers = static_cast<float*>(*device.memory().allocate(64));
  const auto stream = device.make_stream();
  ASSERT_TRUE(stream);
  device.set(Fault{.kind = CallKind::capture, .number = 2, .code = core::Errc::io});
  ASSERT_TRUE((*stream)->begin_capture());
  ASSERT_TRUE((*stream)->launch(Fill{numbers, 3, 16}));
  EXPECT_FALSE((*stream)->end_capture());
  EXPECT_EQ(numbers[0], 0);
  ASSERT_TRUE((*stream)->launch(Fill{numbers, 4, 16}));
  EXPECT_EQ(numbers[0], 4);
  device.memory().deallocate(numbers, 64);
}

TEST(FaultyDevice, CountsWhatLives) {
  HostDevice host;
  FaultyDevice device(host);
  {
    const auto stream = device.make_stream();
    const auto event = device.make_event();
    const auto plans = device.plans(MatrixProduct{.m = 1, .n = 1, .k = 1}, 0);
    ASSERT_TRUE(stream && event && plans);
    EXPECT_EQ(device.live_objects(), 2 + static_cast<std::int64_t>(plans->size()));
    ASSERT_TRUE((*stream)->begin_capture());
    const auto graph = (*stream)->end_capture();
    ASSERT_TRUE(graph);
    EXPECT_EQ(device.live_objects(), 3 + static_cast<std::int64_t>(plans->size()));
  }
  EXPECT_EQ(device.live_objects(), 0);
}

}  // namespace
}  // namespace troupe::gpu
