/// Many images of a data set in one picture, to look at. Pure functions of the data set.
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "data/dataset.hpp"

namespace troupe::data {

struct ContactSheet {
  ImageShape shape;                  // three channels
  std::vector<std::uint8_t> pixels;  // [shape]
};

/// A row of images for each list of samples, in cells of `cell` pixels with a border between them; lists may differ in length. With a key
/// the images are those of training: the same sample in several places is augmented by the epoch key.epoch + its column. Images of one
/// channel are grey; of more than three channels the first three are shown; cells of unreadable samples stay white. Errc::config: more than
/// 50 million pixels; others of the data set.
[[nodiscard]] core::Result<ContactSheet> contact_sheet(const Dataset& data,
                                                       const std::vector<std::vector<std::int64_t>>& rows,
                                                       std::int64_t cell, const AugmentKey* key = nullptr);

}  // namespace troupe::data
