/// A replica's vectors, in device memory and for its caller. If CompileOptions::arenas is device memory the caller has the arenas themselves.
/// Otherwise it has mirrors in host memory, and this class keeps the two equal:
///   - parameters go to the device before their next use after parameters_written(), and come back after an optimizer step;
///   - gradients come back after backward, whole or bucket by bucket, and go to the device before an optimizer step, because an exchange may
///     have changed them;
///   - statistics, which are small and may be changed without notice, go to the device before every pass and come back after a step;
///   - an optimizer's state goes to the device before its step and comes back.
/// Thread rule: as the replica.
#pragma once

#include <memory>

#include "gpu/compile.hpp"
#include "gpu/staging.hpp"

namespace troupe::gpu {

class ReplicaArenas {
 public:
  /// All outlive this object. `is_pinned`: the mirrors are pinned memory of the device, and need no staging.
  ReplicaArenas(Device& device, Compiled& compiled, Staging& staging, bool is_pinned);

  [[nodiscard]] core::Span parameters() noexcept { return caller().parameters.view(); }
  [[nodiscard]] core::Span gradients() noexcept { return caller().gradients.view(); }
  [[nodiscard]] core::Span statistics() noexcept { return caller().statistics.view(); }
  void parameters_written() noexcept { parameters_are_new_ = true; }

  /// The initial statistics.
  [[nodiscard]] core::Result<void> begin(Stream& stream, const nn::Graph& graph);
  /// In fp16, where a step may be computed again: keeps what restore_statistics() needs. Once, before the first step.
  [[nodiscard]] core::Result<void> keep_statistics();
  /// The statistics are as they were before the last training pass: it is computed again.
  [[nodiscard]] core::Result<void> restore_statistics(Stream& stream);
  /// What a pass reads goes to the device.
  [[nodiscard]] core::Result<void> before_pass(Stream& stream);
  /// What a step wrote comes back; of the gradients only if no bucket did before.
  [[nodiscard]] core::Result<void> after_step(Stream& stream, bool with_gradients);
  [[nodiscard]] core::Result<void> after_bucket(Stream& stream, const nn::Bucket& bucket);

  /// The device's vectors of an optimizer step. `state`: the caller's vectors, as checked_state() gives them.
  struct OnDevice {
    core::Span parameters;
    core::Span gradients;
    core::OptimizerState state;
  };
  [[nodiscard]] core::Result<OnDevice> before_update(Stream& stream, core::OptimizerState state);
  [[nodiscard]] core::Result<void> after_update(Stream& stream, core::OptimizerState state);

 private:
  [[nodiscard]] ArenaBuffers& caller() noexcept { return mirrors() ? compiled_.mirrors : compiled_.arenas; }
  [[nodiscard]] bool mirrors() const noexcept { return !compiled_.mirrors.parameters.empty(); }
  [[nodiscard]] core::Result<void> upload(Stream& stream, core::Span device, core::ConstSpan host);
  [[nodiscard]] core::Result<void> download(Stream& stream, core::Span host, core::ConstSpan device);
  [[nodiscard]] core::Result<void> upload_parameters(Stream& stream);

  Device& device_;
  Compiled& compiled_;
  Staging& staging_;
  bool is_pinned_;
  bool parameters_are_new_ = false;
  core::Buffer statistics_before_;      // of keep_statistics(), with arenas in device memory: mirrors are such a copy
  std::array<core::Buffer, 2> states_;  // mirrored state vectors; made by the first step that needs them
};

}  // namespace troupe::gpu
