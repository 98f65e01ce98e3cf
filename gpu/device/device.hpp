/// All that the GPU backend asks of an accelerator: memory, streams, events, kernels, convolutions, matrix products, captured steps.
/// Two implementations: gpu/cuda/ (module troupe_gpu.so: CUDA, cuDNN, cuBLASLt) and HostDevice (gpu/device/host_device.hpp), which executes
/// everything at once on the host. So the compiler of steps, the replica, every kernel's arithmetic and every path of an error are tested on
/// machines without a GPU.
///
/// Errors of all calls: Errc::out_of_memory (device memory runs out), Errc::io (the device or a library failed: the message names operation,
/// file and line). After Errc::io of a lost device every further call fails alike. Work is asynchronous: an error may be reported by a
/// later call on the same device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "core/devices/device_sharing.hpp"
#include "core/error.hpp"
#include "gpu/device/products.hpp"
#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {

struct DeviceInfo {
  std::string name;       // "NVIDIA H200"
  std::string uuid;       // of the physical device
  int compute_major = 0;  // compute capability
  int compute_minor = 0;
  int multiprocessors = 0;
  std::size_t memory = 0;  // bytes, all of it
  std::string libraries;   // "CUDA 13.0, cuDNN 9.10.2, cuBLAS 13.0.2": part of the key of measured choices
};

/// A moment in a stream. Made by Device::make_event, destroyed before it.
class Event {
 public:
  virtual ~Event() = default;
};

/// A captured sequence of operations, executed again by Stream::launch with the same memory.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
};

/// How a device executes one description; owns what its library needs. `workspace` bytes of device memory, aligned to 256, are given at
/// each execution. `engine` names the implementation, for plan.json: Device::plan finds it again. Thread-safe: several streams may run one
/// plan at a time, each with a workspace of its own.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  [[nodiscard]] virtual std::size_t workspace() const noexcept = 0;
  [[nodiscard]] virtual std::string engine() const = 0;
};
class MatrixPlan {
 public:
  virtual ~MatrixPlan() = default;
  [[nodiscard]] virtual std::size_t workspace() const noexcept = 0;
  [[nodiscard]] virtual std::string engine() const = 0;
};

/// An ordered queue of work. Thread rule: one thread at a time. Calls return before the work is done; memory that they name must stay valid
/// until it is. Destruction waits for the work.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual core::Result<void> copy_to_device(void* device, const void* pinned, std::size_t bytes) = 0;
  virtual core::Result<void> copy_to_host(void* pinned, const void* device, std::size_t bytes) = 0;
  virtual core::Result<void> copy(void* to, const void* from, std::size_t bytes) = 0;  ///< both on the device
  virtual core::Result<void> zero(void* device, std::size_t bytes) = 0;

  virtual core::Result<void> launch(const Kernel& kernel) = 0;
  virtual core::Result<void> run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) = 0;
  virtual core::Result<void> run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) = 0;

  virtual core::Result<void> record(Event& event) = 0;  ///< the event happens when all work so far is done
  virtual core::Result<void> wait(Event& event) = 0;    ///< later work waits for the event, the caller does not
  virtual core::Result<void> synchronize() = 0;         ///< the caller waits for all work so far

  /// Calls between these are recorded, not executed: copies, kernels and plans only, from and to the same memory at each launch().
  /// Libraries load code when they run something for the first time, which a capture does not allow: run every kernel and plan of a step
  /// once before it is captured. After a failed call, end_capture() must be called nevertheless: it fails, and the stream is usable again.
  virtual core::Result<void> begin_capture() = 0;
  [[nodiscard]] virtual core::Result<std::unique_ptr<StepGraph>> end_capture() = 0;
  virtual core::Result<void> launch(const StepGraph& graph) = 0;

  /// The library's own handle, for a library that enqueues its own work; null where there is none.
  [[nodiscard]] virtual void* native() noexcept = 0;

  /// Names what follows in profiles, until pop_range(): NVTX. `name` must outlive the call only.
  virtual void push_range(const char* name) noexcept = 0;
  virtual void pop_range() noexcept = 0;
};

/// One accelerator. Thread-safe, but for what its streams say. Outlives everything made by it.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const noexcept = 0;

  /// Device memory, zero-filled, aligned to 256 bytes. Freed memory is kept for later allocations of the process.
  [[nodiscard]] virtual core::Allocator& memory() noexcept = 0;
  /// Page-locked host memory, with which copies are asynchronous.
  [[nodiscard]] virtual core::Allocator& pinned() noexcept = 0;

  /// From now on kernels and copies of this device may name memory of `peer`, a device of the same kind. Their order with work of the peer's
  /// streams is the caller's: the host waits for one before the other begins. False: this device does not reach the other's memory.
  [[nodiscard]] virtual core::Result<bool> reach(Device& peer) = 0;

  /// Memory of this device for other processes to map, apart from memory(). The device outlives it. Errc::config: this device shares none.
  [[nodiscard]] virtual core::Result<std::shared_ptr<core::DeviceSharing>> sharing() = 0;

  [[nodiscard]] virtual core::Result<std::unique_ptr<Stream>> make_stream() = 0;
  [[nodiscard]] virtual core::Result<std::unique_ptr<Event>> make_event() = 0;

  /// The engines that can execute the description, in the library's order of preference, each with a workspace of at most `workspace` bytes.
  /// At least one, or Errc::config (names the description). A library need not fuse all that a description may ask for: a bias, and with a
  /// convolution a bias with relu, for every shape; for an activation without a bias, sigmoid, tanh, an addend and statistics ask for the
  /// unfused description after Errc::config, and launch a kernel for the rest. A fused relu keeps NaN, so that it does not hide that a run diverges.
  [[nodiscard]] virtual core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(
      const Convolution& convolution, std::size_t workspace) = 0;
  [[nodiscard]] virtual core::Result<std::vector<std::unique_ptr<MatrixPlan>>> plans(const MatrixProduct& product,
                                                                                     std::size_t workspace) = 0;
  /// The one of plans() with this `engine()`, without making the others: a choice of an earlier measurement. Errc::config when this device
  /// with its libraries has no such engine, or it needs more workspace.
  [[nodiscard]] virtual core::Result<std::unique_ptr<ConvolutionPlan>> plan(const Convolution& convolution,
                                                                            std::size_t workspace,
                                                                            const std::string& engine) = 0;
  [[nodiscard]] virtual core::Result<std::unique_ptr<MatrixPlan>> plan(const MatrixProduct& product,
                                                                       std::size_t workspace,
                                                                       const std::string& engine) = 0;

  /// Whether timings of this device say anything: false for the host's. Without it the first plan is taken.
  [[nodiscard]] virtual bool is_measurable() const noexcept = 0;
  /// Whether every engine for float32 without TF32 computes in float32: else each is tried before it is taken (gpu/program/trials.hpp).
  [[nodiscard]] virtual bool has_exact_engines() const noexcept = 0;
  /// Seconds between two recorded and reached events.
  [[nodiscard]] virtual core::Result<double> seconds_between(const Event& first, const Event& second) = 0;
};

}  // namespace troupe::gpu
