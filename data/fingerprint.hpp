/// Whether two hosts have the same data set, without comparing all of it.
#pragma once

#include <cstdint>

#include "core/error.hpp"
#include "data/config.hpp"

namespace troupe::data {

/// XXH3-64 of both splits: sizes, shapes, classes, and a thousand samples of each, evenly spread, with their labels. Equal for equal data
/// sets, however their files are packed; an accident is noticed, a forgery may not be. Fails as Dataset::read does.
[[nodiscard]] core::Result<std::uint64_t> fingerprint(const Source& source);

}  // namespace troupe::data
