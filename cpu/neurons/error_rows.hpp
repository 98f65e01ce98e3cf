/// The error of a layer's neurons through their activation, for values that are kept by neuron. Pure.
#pragma once

#include <optional>

#include "core/kernels.hpp"
#include "nn/graph.hpp"

namespace troupe::cpu {

/// dy [neurons, batch] ← dy · f'(z), computed from y = f(z); without activation it stays. sums [neurons] ← its sums over the batch, in an
/// order that depends on the batch only.
void error_rows_backward(std::optional<nn::Activation> activation, core::ConstSpan y, core::Span dy, core::Span sums);

}  // namespace troupe::cpu
