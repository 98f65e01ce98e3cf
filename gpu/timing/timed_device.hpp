/// A Device around another one that measures when its streams have work, with an event before and behind every operation. The events cost the
/// host about a microsecond each, so that a step is a little slower while it is measured: the time without work is an upper bound.
/// Thread-safe, as the device that it wraps.
#pragma once

#include <memory>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// Of the operations between start() and stop(): copies, kernels, plans, captured steps. Seconds of the device's clock.
struct DeviceTimes {
  double span = 0;  // from the begin of the first to the end of the last
  double idle = 0;  // of it, how long no stream had an operation
  double copy = 0;  // of it, how long nothing but copies from and to the host ran
  int operations = 0;
};

class TimedDevice final : public Device {
 public:
  /// Outlives what is made by it.
  explicit TimedDevice(std::shared_ptr<Device> device);
  TimedDevice(const TimedDevice&) = delete;
  TimedDevice& operator=(const TimedDevice&) = delete;
  ~TimedDevice() override;

  /// Makes the events of so many operations at once; further ones are made when they are needed.
  [[nodiscard]] core::Result<void> start(int operations);
  /// Waits for nothing: all streams must have been synchronised.
  [[nodiscard]] core::Result<DeviceTimes> stop();

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return device_->info(); }
  [[nodiscard]] core::Allocator& memory() noexcept override { return device_->memory(); }
  [[nodiscard]] core::Allocator& pinned() noexcept override { return device_->pinned(); }
  [[nodiscard]] core::Result<bool> reach(Device& peer) override { return device_->reach(peer); }
  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceSharing>> sharing() override { return device_->sharing(); }
  [[nodiscard]] core::Result<std::unique_ptr<Stream>> make_stream() override;
  [[nodiscard]] core::Result<std::unique_ptr<Event>> make_event() override { return device_->make_event(); }
  [[nodiscard]] core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(const Convolution& convolution,
                                                                                  std::size_t workspace) override {
    return device_->plans(convolution, workspace);
  }
  [[nodiscard]] core::Result<std::vector<std::unique_ptr<MatrixPlan>>> plans(const MatrixProduct& product,
                                                                             std::size_t workspace) override {
    return device_->plans(product, workspace);
  }
  [[nodiscard]] core::Result<std::unique_ptr<ConvolutionPlan>> plan(const Convolution& convolution,
                                                                    std::size_t workspace,
                                                                    const std::string& engine) override {
    return device_->plan(convolution, workspace, engine);
  }
  [[nodiscard]] core::Result<std::unique_ptr<MatrixPlan>> plan(const MatrixProduct& product, std::size_t workspace,
                                                               const std::string& engine) override {
    return device_->plan(product, workspace, engine);
  }
  [[nodiscard]] bool is_measurable() const noexcept override { return device_->is_measurable(); }
  [[nodiscard]] bool has_exact_engines() const noexcept override { return device_->has_exact_engines(); }
  [[nodiscard]] core::Result<double> seconds_between(const Event& first, const Event& second) override {
    return device_->seconds_between(first, second);
  }

  class Record;  // what its streams write to

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Record> record_;
};

}  // namespace troupe::gpu
