/// The text of a tensor in a configuration: "fc1.weight 128x64", "scale scalar". Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

[[nodiscard]] std::string to_string(const GivenTensor& tensor);
/// The reverse: the shape is behind the last space, for names may have spaces. Errc::config.
[[nodiscard]] core::Result<GivenTensor> parse_given_tensor(std::string_view text);

}  // namespace troupe::nn
