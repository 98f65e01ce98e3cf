#include "data/images/geometry.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::data {
namespace {

/// Half away from an even number, as Python's round(): to the even one.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

PixelBox largest_centred(PictureSize picture, const CropRange& range) {
  const double ratio = static_cast<double>(picture.width) / static_cast<double>(picture.height);
  std::int64_t width = picture.width, height = picture.height;
  if (ratio < range.least_ratio)
    height = std::min(height, rounded(static_cast<double>(width) / range.least_ratio));
  else if (ratio > range.most_ratio)
    width = std::min(width, rounded(static_cast<double>(height) * range.most_ratio));
  width = std::max<std::int64_t>(width, 1);
  height = std::max<std::int64_t>(height, 1);
  return {(picture.width - width) / 2, (picture.height - height) / 2, width, height};
}

PixelBox random_box(PictureSize picture, const CropRange& range, core::Random& random) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(picture.width) * static_cast<double>(picture.height);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double wanted = area * random.uniform(range.least_area, range.most_area);
    const double ratio = std::exp(random.uniform(std::log(range.least_ratio), std::log(range.most_ratio)));
    const std::int64_t width = rounded(std::sqrt(wanted * ratio)), height = rounded(std::sqrt(wanted / ratio));
    if (width < 1 || height < 1 || width > picture.width || height > picture.height) continue;
    const auto top = random.below(static_cast<std::uint64_t>(picture.height - height) + 1);
    const auto left = random.below(static_cast<std::uint64_t>(picture.width - width) + 1);
    return {static_cast<std::int64_t>(left), static_cast<std::int64_t>(top), width, height};
  }
  return largest_centred(picture, range);
}

}  // namespace

Framing centre_framing(PictureSize picture, std::int64_t side, std::int64_t crop) {
  const std::int64_t shorter = std::min(picture.width, picture.height),
                     longer = std::max(picture.width, picture.height);
  const std::int64_t long_side = side * longer / shorter;
  const PictureSize resized =
      picture.width <= picture.height ? PictureSize{side, long_side} : PictureSize{long_side, side};
  return {{0, 0, picture.width, picture.height},
          resized,
          {rounded(static_cast<double>(resized.width - crop) / 2),
           rounded(static_cast<double>(resized.height - crop) / 2), crop, crop}};
}

Framing random_framing(PictureSize picture, std::int64_t crop, const CropRange& range, core::Random& random) {
  return {random_box(picture, range, random), {crop, crop}, {0, 0, crop, crop}};
}

}  // namespace troupe::data
