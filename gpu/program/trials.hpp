/// Tries the engines of a description on scratch memory, and removes those that do not compute what they should. Compile time only.
/// Thread rule: one thread.
#pragma once

#include <memory>
#include <vector>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// Removes those of `plans` whose fused relu turns NaN into 0, which would hide that a run diverges: libraries say of few engines that they
/// pass NaN on. Each is executed once, with a bias that is NaN. All are removed where there is no memory for it, none of a
/// description without a fused relu. `stream`: as of fastest(). False: there was no memory. Errors: those of a lost device.
[[nodiscard]] core::Result<bool> remove_hiding_nan(Device& device, Stream& stream, const Convolution& description,
                                                   std::vector<std::unique_ptr<ConvolutionPlan>>& plans);

/// Removes those of `plans` whose statistics are wrong: each is executed on tensors of different positive numbers, into sums that
/// are NaN before. They must be overwritten, and be what a kernel of our own finds in y but for rounding. All are removed where there is no
/// memory for it, none of a description without statistics. `stream`, result and errors: as above.
[[nodiscard]] core::Result<bool> remove_wrong_statistics(Device& device, Stream& stream, const Convolution& description,
                                                         std::vector<std::unique_ptr<ConvolutionPlan>>& plans);

/// Of a convolution in float32 without TF32: removes those of `plans` that compute it less exactly, whatever they say of themselves. Each is
/// executed once on random numbers, with a bias and an addend of 0; 8 to 64 elements of its result are compared with sums in double, which take the
/// host some hundredths of a second, longer only for gradients of weights over millions of pixels. Without activation, or with relu. `stream`: as above.
/// Errors: those of a lost device; Errc::out_of_memory where there is no memory for it, since an engine that was not tried must not be used, and there
/// may be no other way.
[[nodiscard]] core::Result<void> remove_inexact(Device& device, Stream& stream, const Convolution& description,
                                                std::vector<std::unique_ptr<ConvolutionPlan>>& plans);

/// All of the above; inexact ones where the device may have some (Device::has_exact_engines). Result and errors: as of these.
[[nodiscard]] core::Result<bool> remove_unfit(Device& device, Stream& stream, const Convolution& description,
                                              std::vector<std::unique_ptr<ConvolutionPlan>>& plans);
[[nodiscard]] inline core::Result<bool> remove_unfit(Device& /*device*/, Stream& /*stream*/,
                                                     const MatrixProduct& /*description*/,
                                                     std::vector<std::unique_ptr<MatrixPlan>>& /*plans*/) {
  return true;
}

}  // namespace troupe::gpu
