/// A fingerprint to check that two hosts have the same data set, without comparing all of it. Thread-safe.
#pragma once

#include <cstdint>

#include "core/error.hpp"
#include "data/config.hpp"

namespace troupe::data {

/// XXH3-64 of both splits: sizes, shapes, classes, and a thousand samples of each (a hundred, as they are stored, of streamed ones),
/// evenly spread, with their labels. Equal for equal data sets in any packing of files. Detects accidents, not forgery. Errors as
/// Dataset::stored.
[[nodiscard]] core::Result<std::uint64_t> fingerprint(const Source& source);
/// The same of one split.
[[nodiscard]] core::Result<std::uint64_t> fingerprint(const BatchBuilder& split);

}  // namespace troupe::data
