// What is measured of a device: on one whose clock the test sets, and on HostDevice.
#include <map>

#include <gtest/gtest.h>

#include "core/half.hpp"
#include "gpu/timing/step_times.hpp"
#include "gpu/timing/timed_device.hpp"
#include "gpu/timing/vector_rates.hpp"
#include "tests/gpu/idle_device.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

class TimedDeviceTest : public ::testing::Test {
 protected:
  TimedDeviceTest() {
    idle_->on_copy = [this] { idle_->now += 2; };
    idle_->on_run = [this](const std::string&) -> core::Result<void> {
      idle_->now += 5;
      return {};
    };
  }
  void run(Stream& stream) { ASSERT_TRUE(stream.run(*plan_, MatrixOperands{}, nullptr)); }

  std::shared_ptr<IdleDevice> idle_ = std::make_shared<IdleDevice>();
  gpu::TimedDevice timed_{idle_};
  std::unique_ptr<Stream> stream_ = timed_.make_stream().value();
  std::unique_ptr<MatrixPlan> plan_ = [this] {
    MatrixProduct product;
    product.m = product.n = product.k = 8;
    return std::move(timed_.plans(product, 0).value().front());
  }();
};

// 0 to 2 a copy, 2 to 3 nothing, 3 to 8 and 8 to 13 work, 13 to 17 nothing, 17 to 19 a copy.
TEST_F(TimedDeviceTest, TellsWorkCopiesAndWaitsApart) {
  ASSERT_TRUE(timed_.start(2));  // more operations than expected
  ASSERT_TRUE(stream_->copy_to_device(nullptr, nullptr, 4));
  idle_->now += 1;
  run(*stream_);
  run(*stream_);
  idle_->now += 4;
  ASSERT_TRUE(stream_->copy_to_host(nullptr, nullptr, 4));
  const auto times = timed_.stop();
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->operations, 4);
  EXPECT_DOUBLE_EQ(times->span, 19);
  EXPECT_DOUBLE_EQ(times->idle, 5);
  EXPECT_DOUBLE_EQ(times->copy, 4);
}

// Work on one stream from 0 to 10, within it work of another from 1 to 6 and a copy from 6 to 8: the device is never idle.
TEST_F(TimedDeviceTest, StreamsOverlap) {
  const auto other = timed_.make_stream().value();
  ASSERT_TRUE(timed_.start(8));
  bool is_outer = true;
  idle_->on_run = [&](const std::string&) -> core::Result<void> {
    if (!std::exchange(is_outer, false)) {
      idle_->now += 5;
      return {};
    }
    idle_->now += 1;
    run(*other);
    EXPECT_TRUE(other->copy_to_device(nullptr, nullptr, 4));
    idle_->now += 2;
    return {};
  };
  run(*stream_);
  const auto times = timed_.stop();
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->span, 10);
  EXPECT_DOUBLE_EQ(times->idle, 0);
  EXPECT_DOUBLE_EQ(times->copy, 0);
}

TEST_F(TimedDeviceTest, MeasuresBetweenStartAndStopAndNoCaptures) {
  run(*stream_);
  ASSERT_TRUE(timed_.start(1));
  ASSERT_TRUE(stream_->begin_capture());
  run(*stream_);
  const auto graph = stream_->end_capture();
  ASSERT_TRUE(graph);
  ASSERT_TRUE(stream_->launch(**graph));
  const auto times = timed_.stop();
  run(*stream_);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->operations, 1);
  EXPECT_EQ(timed_.stop()->operations, 0);
}

TEST(StepTimesTest, OfAModelWhoseVectorsAreOnTheDevice) {
  const auto device = std::make_shared<HostDevice>();
  const auto times = step_times(device, lenet(), {.batch = 2}, 3);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->steps, 3);
  EXPECT_GT(times->ms_per_step, 0);
  EXPECT_GE(times->device.operations, 3 * 4);  // at least forward, backward, losses and the optimizer
  EXPECT_LE(times->device.idle + times->device.copy, times->device.span);
  EXPECT_EQ(device->live_bytes(), 0U);
}

TEST(VectorRatesTest, EveryKernelHasARateBesideTheCopys) {
  HostDevice device;
  const auto rates = vector_rates(device, 1000, 2);
  ASSERT_TRUE(rates) << rates.error().message;
  std::map<std::string, VectorRate> by_name;
  for (const auto& rate : *rates) {
    EXPECT_GT(rate.gb_per_s, 0) << rate.name;
    EXPECT_GT(rate.of_a_copy, 0) << rate.name;
    by_name[rate.name] = rate;
  }
  EXPECT_EQ(rates->front().name, "copy");
  EXPECT_EQ(by_name.size(), rates->size());
  for (const char* name : {"elastic_pair", "momentum", "adam"}) EXPECT_EQ(by_name.count(name), 1U) << name;
  EXPECT_EQ(device.live_bytes(), 0U);
}

TEST(VectorRatesTest, TooLittleMemoryIsAnError) {
  HostDevice device(HostDeviceOptions{.memory = 10'000});
  const auto rates = vector_rates(device, 1000, 1);
  ASSERT_FALSE(rates);
  EXPECT_EQ(rates.error().code, core::Errc::out_of_memory);
}

}  // namespace
}  // namespace troupe::gpu::testing
