#include "nn/zoo/given_tensor.hpp"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::nn {

std::string to_string(const GivenTensor& tensor) {
  return fmt::format("{} {}", tensor.name,
                     tensor.shape.empty() ? std::string("scalar") : fmt::format("{}", fmt::join(tensor.shape, "x")));
}

core::Result<GivenTensor> parse_given_tensor(std::string_view text) {
  const auto space = text.rfind(' ');
  const auto refuse = [] { return core::fail(core::Errc::config, "a tensor is \"NAME 3x4\" or \"NAME scalar\""); };
  if (space == std::string_view::npos || space == 0) return refuse();
  GivenTensor tensor{std::string(text.substr(0, space)), {}};
  auto shape = text.substr(space + 1);
  if (shape == "scalar") return tensor;
  for (;;) {
    const auto times = std::min(shape.find('x'), shape.size());
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + times, extent);
    if (error != std::errc{} || end != shape.data() + times) return refuse();
    tensor.shape.push_back(extent);
    if (times == shape.size()) return tensor;
    shape.remove_prefix(times + 1);
  }
}

}  // namespace troupe::nn
