/// How long a device waits for its host in a training step whose vectors are in device memory: forward, loss, backward and momentum on one
/// batch of pinned memory. For `troupe bench device`. Thread rule: the calling thread.
#pragma once

#include <memory>

#include "gpu/timing/timed_device.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu {

struct StepTimes {
  int steps = 0;           // without events
  double ms_per_step = 0;  // of these
  int device_steps =
      0;  // with events, in each of five rounds: a fifth of `steps` and one more, so that as many have one before them
  DeviceTimes device;        // of the round in the middle, by its idle time: a pause of the host's does not count
  bool is_captured = false;  // whether the host launches each pass as one graph
};

/// `options.arenas` is ignored. Errors as compile and step.
[[nodiscard]] core::Result<StepTimes> step_times(const std::shared_ptr<Device>& device, const nn::Graph& graph,
                                                 nn::CompileOptions options, int steps);

}  // namespace troupe::gpu
