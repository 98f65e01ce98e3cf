/// How long a device waits for its host in a training step whose vectors are in device memory: forward, loss, backward and momentum on one
/// batch of pinned memory. For `troupe bench device`. Thread rule: the calling thread.
#pragma once

#include <memory>

#include "gpu/timing/timed_device.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu {

struct StepTimes {
  int steps = 0;             // of each of the two measurements
  double ms_per_step = 0;    // without events
  DeviceTimes device;        // of steps with events
  bool is_captured = false;  // whether the host launches each pass as one graph
};

/// `options.arenas` is ignored. Errors as compile and step.
[[nodiscard]] core::Result<StepTimes> step_times(const std::shared_ptr<Device>& device, const nn::Graph& graph,
                                                 nn::CompileOptions options, int steps);

}  // namespace troupe::gpu
