/// Single elements of a convolution's result, in double: what an engine's result is compared with. HostDevice's convolution would take seconds for the
/// whole of a layer, and sums in float. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>

#include "gpu/device/products.hpp"

namespace troupe::gpu {

/// An operand's element by its index in the tensor.
using ElementOf = std::function<double(std::int64_t)>;

/// How many products an element of the result sums, at most.
[[nodiscard]] std::int64_t products_of_an_element(const Convolution& convolution);
/// How many elements the result has.
[[nodiscard]] std::int64_t elements_of_the_result(const Convolution& convolution);
/// Element `index` of y (forward; without bias, addend and activation), dx or dw. `first` is x (forward, backward_weights) or dy (backward_data),
/// `second` is w (forward, backward_data) or dy (backward_weights).
[[nodiscard]] double element_of_the_result(const Convolution& convolution, std::int64_t index, const ElementOf& first,
                                           const ElementOf& second);

}  // namespace troupe::gpu
