/// Troupe's own operations of a step (KernelCall::run), on plain memory. Thread rule: stateless.
#pragma once

#include "cpu/program/program.hpp"

namespace troupe::cpu {

/// data: y [rows, columns], dy [rows, columns] → dz in place, db [columns] ← Σ dz over the rows in order.
void activation_and_bias_backward(const KernelCall& call, const StepContext& context);
/// data: dz [rows, columns], db [columns] ← Σ dz over the rows in order.
void bias_backward(const KernelCall& call, const StepContext& context);
/// data: x [rows, columns], mask (nn/dropout.hpp), y. Training: draws the mask and y ← x · mask; otherwise y ← x.
void dropout_forward(const KernelCall& call, const StepContext& context);
/// data: batch mean, batch variance, running mean, running variance, [columns] each. The running values move by `rate` towards the
/// batch's, which are over `rows` values per channel (nn::BatchNormLayer).
void update_running_statistics(const KernelCall& call, const StepContext& context);
/// data: x [batch, channels, height, width], y [batch, channels, out_height, out_width] of `convolution`: averages of windows
/// (nn::AdaptiveAveragePoolLayer); and backward: dy, dx.
void adaptive_pool_forward(const KernelCall& call, const StepContext& context);
void adaptive_pool_backward(const KernelCall& call, const StepContext& context);
/// data: mask, dy → dx in place.
void dropout_backward(const KernelCall& call, const StepContext& context);

}  // namespace troupe::cpu
