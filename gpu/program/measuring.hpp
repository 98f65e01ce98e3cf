/// Tries the engines of a description on scratch memory. They are timed as captured steps: an engine that cannot be captured is not taken.
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

/// Removes those of `plans` whose fused relu turns NaN into 0, which would hide that a run diverges: libraries say of few engines that they
/// pass NaN on. Each is executed once, with a bias that is NaN. All are removed where there is no memory for it, none of a
/// description without a fused relu. `stream`: as of fastest(). False: there was no memory. Errors: those of a lost device.
[[nodiscard]] core::Result<bool> remove_hiding_nan(Device& device, Stream& stream, const Convolution& description,
                                                   std::vector<std::unique_ptr<ConvolutionPlan>>& plans);

/// Removes those of `plans` whose statistics are wrong: each is executed three times on tensors of different positive numbers, into sums that
/// are NaN before. They must be overwritten, be what a kernel of our own finds in y but for rounding, and with `deterministic` have the same
/// bits each time. All are removed where there is no memory for it, none of a description without statistics. `stream`, result and errors: as
/// above.
[[nodiscard]] core::Result<bool> remove_wrong_statistics(Device& device, Stream& stream, const Convolution& description,
                                                         std::vector<std::unique_ptr<ConvolutionPlan>>& plans);

/// Both of the above.
[[nodiscard]] core::Result<bool> remove_unfit(Device& device, Stream& stream, const Convolution& description,
                                              std::vector<std::unique_ptr<ConvolutionPlan>>& plans);
[[nodiscard]] inline core::Result<bool> remove_unfit(Device& /*device*/, Stream& /*stream*/,
                                                     const MatrixProduct& /*description*/,
                                                     std::vector<std::unique_ptr<MatrixPlan>>& /*plans*/) {
  return true;
}

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
