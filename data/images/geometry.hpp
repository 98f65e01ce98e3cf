/// Which part of a picture becomes an image of a batch, and how it is resized. Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "core/random.hpp"
#include "data/images/pixels.hpp"

namespace troupe::data {

/// `box` of the picture is resized to `resized`, of which `window` is seen.
struct Framing {
  PixelBox box;
  PictureSize resized;
  PixelBox window;
  bool operator==(const Framing&) const = default;
};

/// Resizes the whole picture so that its shorter side is `side` (the longer one rounded down, as torchvision's Resize), and takes the
/// centre of `crop` x `crop` (as its CenterCrop). REQUIRES crop <= side and a picture that is not empty.
[[nodiscard]] Framing centre_framing(PictureSize picture, std::int64_t side, std::int64_t crop);

/// The range of a random resized crop: share of the picture's area, and width over height.
struct CropRange {
  double least_area = 0.08;
  double most_area = 1.0;
  double least_ratio = 3.0 / 4.0;
  double most_ratio = 4.0 / 3.0;
};

/// A part of random area and ratio at a random place, resized to `crop` x `crop`: torchvision's RandomResizedCrop.get_params. After ten
/// attempts that do not fit, the largest centred part whose ratio is in the range.
[[nodiscard]] Framing random_framing(PictureSize picture, std::int64_t crop, const CropRange& range,
                                     core::Random& random);

}  // namespace troupe::data
