#include "data/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "data/images/decode.hpp"
#include "data/images/resample.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;

/// Buffers of a decoding thread.
struct PictureScratch {
  std::vector<std::uint8_t> bytes;
  PixelBuffer pixels;
};

PictureScratch& picture_scratch() {
  thread_local PictureScratch scratch;
  return scratch;
}

/// Plain bytes, channel by channel, as a decoded picture.
void interleave(std::span<const std::uint8_t> planes, const RawShape& shape, const PixelBox& box, PixelBuffer& out) {
  out.reshape({box.width, box.height});
  out.box = {0, 0, static_cast<double>(box.width), static_cast<double>(box.height)};
  const std::int64_t plane = shape[1] * shape[2];
  for (std::int64_t y = 0; y < box.height; ++y) {
    std::uint8_t* to = out.row(y);
    const std::uint8_t* from = planes.data() + (box.top + y) * shape[2] + box.left;
    for (std::int64_t x = 0; x < box.width; ++x, to += PixelBuffer::kBytes, ++from) {
      to[0] = from[0];
      to[1] = from[plane];
      to[2] = from[2 * plane];
      to[3] = 0;
    }
  }
}

/// One axis of a framing: the first source pixel that the window needs, and their number. The filter reaches max(scale, 1) to each side.
std::pair<std::int64_t, std::int64_t> needed(std::int64_t begin, std::int64_t length, std::int64_t resized,
                                             std::int64_t from, std::int64_t count) {
  const double scale = static_cast<double>(length) / static_cast<double>(resized);
  const double margin = 2 * std::max(scale, 1.0) + 1;
  const auto first = static_cast<std::int64_t>(std::max(0.0, static_cast<double>(from) * scale - margin));
  const auto past = static_cast<std::int64_t>(
      std::min(static_cast<double>(length), std::ceil(static_cast<double>(from + count) * scale + margin)));
  return {begin + first, past - first};
}

/// What of a framing's box must be decoded for its window, and how large it becomes at least.
struct NeededPart {
  PixelBox box;
  PictureSize least;
};

NeededPart needed_part(const Framing& framing) {
  const auto& [box, resized, window] = framing;
  const auto [left, width] = needed(box.left, box.width, resized.width, window.left, window.width);
  const auto [top, height] = needed(box.top, box.height, resized.height, window.top, window.height);
  const auto share = [](std::int64_t whole, std::int64_t part, std::int64_t of) {
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(whole) * static_cast<double>(part) / static_cast<double>(of)));
  };
  return {{left, top, width, height},
          {share(resized.width, width, box.width), share(resized.height, height, box.height)}};
}

/// The buffer has `part`; its box becomes where `whole` lies, which may reach beyond the buffer.
void extend_box(PixelBuffer& buffer, const PixelBox& part, const PixelBox& whole) {
  const double across = buffer.box.width / static_cast<double>(part.width);
  const double down = buffer.box.height / static_cast<double>(part.height);
  buffer.box = {buffer.box.left + static_cast<double>(whole.left - part.left) * across,
                buffer.box.top + static_cast<double>(whole.top - part.top) * down,
                static_cast<double>(whole.width) * across, static_cast<double>(whole.height) * down};
}

}  // namespace

Result<std::shared_ptr<const PictureDataset>> PictureDataset::open(const PictureOptions& options,
                                                                   std::shared_ptr<const SampleSource> source) {
  const auto raw = source->raw_shape();
  if (!raw && options.side == 0)
    return fail(Errc::config, fmt::format("data.name = \"{}\" has pictures of any size: set data.crop or data.resize, "
                                          "the side of the images in pixels",
                                          options.name));
  if (raw && (*raw)[0] != 3 && (options.side != 0 || options.jitter.any()))
    return fail(Errc::config,
                fmt::format("data.resize, data.random_resized_crop and colour jitter need images of three "
                            "channels, and those of '{}' have {}",
                            options.name, (*raw)[0]));
  if (options.side > 0 && options.shorter < options.side)
    return fail(Errc::config, fmt::format("data.resize is {} and data.crop {}: a crop is no larger than the image",
                                          options.shorter, options.side));
  if (source->size() == 0) return fail(Errc::data, fmt::format("data set '{}' has no sample", options.name));
  std::shared_ptr<PictureDataset> data(new PictureDataset);
  data->options_ = options;
  data->size_ = options.limit > 0 ? std::min(options.limit, source->size()) : source->size();
  data->shape_ =
      options.side > 0 ? ImageShape{3, options.side, options.side} : ImageShape{(*raw)[0], (*raw)[1], (*raw)[2]};
  data->source_ = std::move(source);
  return data;
}

std::int64_t PictureDataset::at(std::int64_t index) const {
  if (index < 0 || index >= size_) throw std::out_of_range(fmt::format("sample {} of {}", index, size_));
  return size_ == source_->size() ? index : index * source_->size() / size_;
}

std::vector<std::int64_t> PictureDataset::shard_begins() const {
  if (size_ != source_->size()) return {};
  return source_->shard_begins();
}

core::Error PictureDataset::placed(std::int64_t index, const core::Error& error) const {
  return {error.code, fmt::format("{}: {}", where(index), error.message)};
}

Result<std::int32_t> PictureDataset::stored(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  return source_->fetch(at(index), bytes);
}

Result<std::int32_t> PictureDataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  return image(index, nullptr, pixels);
}

Result<std::int32_t> PictureDataset::read_augmented(std::int64_t index, const AugmentKey& key,
                                                    std::span<std::uint8_t> pixels) const {
  // The second stream of a sample: Preprocess::train_view() draws from the one without this bit.
  constexpr std::uint64_t kPart = 1ULL << 39;
  core::Random random(key.seed, core::Purpose::augment,
                      std::uint64_t{key.epoch} << 40 | kPart | static_cast<std::uint64_t>(index));
  return image(index, &random, pixels);
}

Result<std::int32_t> PictureDataset::image(std::int64_t index, core::Random* random,
                                           std::span<std::uint8_t> pixels) const {
  if (pixels.size() != static_cast<std::size_t>(shape_.size()))
    throw std::out_of_range(fmt::format("an image of {} bytes into {}", shape_.size(), pixels.size()));
  auto& scratch = picture_scratch();
  const auto label = source_->fetch(at(index), scratch.bytes);
  if (!label) return label;
  const auto rendered = render(scratch.bytes, random, pixels);
  trim(scratch.bytes);
  trim(scratch.pixels.bytes);
  if (!rendered) return tl::unexpected(placed(index, rendered.error()));
  if (random && options_.jitter.any()) apply_jitter(draw_jitter(options_.jitter, *random), pixels);
  return label;
}

Result<void> PictureDataset::render(std::span<const std::uint8_t> bytes, core::Random* random,
                                    std::span<std::uint8_t> pixels) const {
  if (options_.side == 0) {
    std::memcpy(pixels.data(), bytes.data(), pixels.size());
    return {};
  }
  const auto raw = source_->raw_shape();
  const auto size =
      raw ? Result<PictureSize>(PictureSize{(*raw)[2], (*raw)[1]}) : picture_size(bytes, options_.most_pixels);
  if (!size) return tl::unexpected(size.error());
  const Framing framing = random && options_.random_resized_crop
                              ? random_framing(*size, options_.side, options_.range, *random)
                              : centre_framing(*size, options_.shorter, options_.side);
  auto& buffer = picture_scratch().pixels;
  const auto [part, least] = needed_part(framing);
  if (raw) {
    interleave(bytes, *raw, part, buffer);
  } else if (auto decoded = decode_picture(bytes, part, least, buffer); !decoded) {
    return decoded;
  }
  extend_box(buffer, part, framing.box);
  resample(buffer, framing.resized, framing.window, pixels);
  return {};
}

Result<Picture> PictureDataset::picture(std::int64_t index) const {
  auto& scratch = picture_scratch();
  if (const auto label = source_->fetch(at(index), scratch.bytes); !label) return tl::unexpected(label.error());
  if (const auto raw = source_->raw_shape()) return Picture{{(*raw)[0], (*raw)[1], (*raw)[2]}, scratch.bytes};
  const auto size = picture_size(scratch.bytes, options_.most_pixels);
  if (!size) return tl::unexpected(placed(index, size.error()));
  if (const auto decoded = decode_picture(scratch.bytes, {0, 0, size->width, size->height}, *size, scratch.pixels);
      !decoded)
    return tl::unexpected(placed(index, decoded.error()));
  Picture result{{3, size->height, size->width}, {}};
  result.pixels.resize(static_cast<std::size_t>(result.shape.size()));
  resample(scratch.pixels, *size, {0, 0, size->width, size->height}, result.pixels);
  trim(scratch.pixels.bytes);
  return result;
}

}  // namespace troupe::data
