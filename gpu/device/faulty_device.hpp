/// A Device that fails on request, around another one: tests walk every path of an error with it. Thread-safe, as the device that it wraps.
///
/// Each call of a kind has a number, from 1, over all streams and allocators of this device. A fault fails one call, or that call and every
/// later one of every kind, as a lost device does. A call that fails does nothing: no memory is taken, nothing is executed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

enum class CallKind : std::uint8_t {
  allocation,  ///< of device memory
  pinned_allocation,
  stream,  ///< make_stream
  event,   ///< make_event
  plan,    ///< plan, plans
  copy,    ///< copy, copy_to_device, copy_to_host, zero
  launch,  ///< of a kernel
  run,     ///< of a plan
  record,  ///< of an event
  wait,    ///< for an event
  synchronize,
  capture,  ///< begin_capture, end_capture
  graph,    ///< launch of a captured step
  timing,   ///< seconds_between
  sharing,  ///< memory for other processes: sharing, its allocations, handle_of, open
};
inline constexpr std::size_t kCallKinds = 15;
[[nodiscard]] const char* to_string(CallKind kind) noexcept;  // "allocation"

struct Fault {
  CallKind kind = CallKind::allocation;
  std::uint64_t number = 1;          // of the call that fails
  core::Errc code = core::Errc::io;  // out_of_memory or io
  bool lost = false;                 // every later call fails too, with io
};

/// The calls so far and the fault; shared by the device and all that it made.
class FaultPlan {
 public:
  void set(std::optional<Fault> fault);
  /// Counts a call. The error, if it is to fail.
  [[nodiscard]] core::Result<void> call(CallKind kind);
  [[nodiscard]] std::uint64_t calls(CallKind kind) const;
  [[nodiscard]] bool struck() const;  ///< a call has failed since set()

 private:
  mutable std::mutex mutex_;
  std::optional<Fault> fault_;
  std::array<std::uint64_t, kCallKinds> calls_{};  // since set()
  bool struck_ = false;
};

class FaultyDevice final : public Device {
 public:
  /// `device` outlives this.
  explicit FaultyDevice(Device& device);
  FaultyDevice(const FaultyDevice&) = delete;
  FaultyDevice& operator=(const FaultyDevice&) = delete;
  ~FaultyDevice() override;

  /// Starts counting anew. Not while another thread uses the device.
  void set(std::optional<Fault> fault) { faults_->set(fault); }
  [[nodiscard]] std::uint64_t calls(CallKind kind) const { return faults_->calls(kind); }  ///< since set()
  [[nodiscard]] bool struck() const { return faults_->struck(); }
  /// Streams, events, plans and captured steps that live now.
  [[nodiscard]] std::int64_t live_objects() const { return live_.use_count() - 1; }

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return device_.info(); }
  [[nodiscard]] core::Allocator& memory() noexcept override;
  [[nodiscard]] core::Allocator& pinned() noexcept override;
  [[nodiscard]] core::Result<bool> reach(Device& peer) override { return device_.reach(peer); }
  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceSharing>> sharing() override;
  [[nodiscard]] core::Result<std::unique_ptr<Stream>> make_stream() override;
  [[nodiscard]] core::Result<std::unique_ptr<Event>> make_event() override;
  [[nodiscard]] core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(const Convolution& convolution,
                                                                                  std::size_t workspace) override;
  [[nodiscard]] core::Result<std::vector<std::unique_ptr<MatrixPlan>>> plans(const MatrixProduct& product,
                                                                             std::size_t workspace) override;
  [[nodiscard]] core::Result<std::unique_ptr<ConvolutionPlan>> plan(const Convolution& convolution,
                                                                    std::size_t workspace,
                                                                    const std::string& engine) override;
  [[nodiscard]] core::Result<std::unique_ptr<MatrixPlan>> plan(const MatrixProduct& product, std::size_t workspace,
                                                               const std::string& engine) override;
  [[nodiscard]] bool is_measurable() const noexcept override { return device_.is_measurable(); }
  [[nodiscard]] bool has_exact_engines() const noexcept override { return device_.has_exact_engines(); }
  [[nodiscard]] core::Result<double> seconds_between(const Event& first, const Event& second) override;

 private:
  class FaultyAllocator;
  class FaultySharing;
  Device& device_;
  std::shared_ptr<FaultPlan> faults_;
  std::shared_ptr<const int> live_;  // each object holds one reference more
  std::unique_ptr<FaultyAllocator> memory_;
  std::unique_ptr<FaultyAllocator> pinned_;
};

}  // namespace troupe::gpu
