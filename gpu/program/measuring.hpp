/// Times the engines of a description on scratch memory, as captured steps: an engine that cannot be captured is not taken.
/// Compile time only. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

struct Fastest {
  std::size_t index = 0;
  double seconds = 0;  // 0: not measured
};

/// From the convolution's input to mean and deviation of a batch norm, as captured steps.
struct StatisticsTimes {
  Fastest summed;    // the fastest of the plans with statistics, and the kernel behind it
  double apart = 0;  // without statistics, and the kernels that read y again; 0: not measured
};
/// `description` and `plans` have statistics, `apart` has none. Nothing is measured where there is no memory for it. Errors: those of a
/// lost device.
[[nodiscard]] core::Result<StatisticsTimes> time_statistics(Device& device, Stream& stream,
                                                            const Convolution& description,
                                                            const std::vector<std::unique_ptr<ConvolutionPlan>>& plans,
                                                            const ConvolutionPlan& apart);

/// The fastest of `plans`, on a stream of `device` that is idle before and afterwards; the first, not measured, if there is one only, or no
/// memory to measure in, or none runs. Errors: those of a lost device.
[[nodiscard]] core::Result<Fastest> fastest(Device& device, Stream& stream, const Convolution& description,
                                            const std::vector<std::unique_ptr<ConvolutionPlan>>& plans);
[[nodiscard]] core::Result<Fastest> fastest(Device& device, Stream& stream, const MatrixProduct& description,
                                            const std::vector<std::unique_ptr<MatrixPlan>>& plans);

}  // namespace troupe::gpu
