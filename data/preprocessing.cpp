#include "data/preprocessing.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "core/random.hpp"
#include "data/order/bad_samples.hpp"

namespace troupe::data {
namespace {

constexpr double kFullByte = 255.0;

std::size_t positive(std::int64_t value) { return static_cast<std::size_t>(value); }

/// The inner loop of loading: simple, so that compilers vectorise it.
void scale_bytes(const std::uint8_t* __restrict bytes, const float* __restrict bias, float scale, float* __restrict out,
                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) * scale + bias[i];
}

}  // namespace

core::Result<Statistics> measure_statistics(const Dataset& data, const StatisticsLimits& limits,
                                            const std::function<void(double)>& on_progress) {
  const ImageShape shape = data.shape();
  const std::size_t plane = positive(shape.height * shape.width);
  std::vector<std::uint64_t> sums(positive(shape.size()));
  std::vector<std::uint64_t> squares(positive(shape.channels));
  std::vector<std::uint8_t> pixels(positive(shape.size()));
  const std::int64_t count = limits.samples > 0 ? std::min(limits.samples, data.size()) : data.size();
  BadSamples bad(std::min(limits.max_bad, count - 1));  // something must be left to measure
  for (std::int64_t k = 0; k < count; ++k) {
    if (on_progress) on_progress(static_cast<double>(k) / static_cast<double>(count));
    const auto sample = k * data.size() / count;
    if (const auto label = data.read(sample, pixels); !label) {
      if (label.error().code != core::Errc::data) return tl::unexpected(label.error());
      if (auto counted = bad.add(sample, label.error()); !counted) return tl::unexpected(counted.error());
      continue;
    }
    for (std::size_t i = 0; i < pixels.size(); ++i) sums[i] += pixels[i];
    for (std::size_t c = 0; c < squares.size(); ++c) {
      std::uint64_t square = 0;
      for (std::size_t i = c * plane; i < (c + 1) * plane; ++i) square += std::uint64_t{pixels[i]} * pixels[i];
      squares[c] += square;
    }
  }

  const auto samples = static_cast<double>(count - bad.count());
  Statistics result;
  for (const auto sum : sums) result.image_mean.push_back(static_cast<double>(sum) / (samples * kFullByte));
  for (std::size_t c = 0; c < squares.size(); ++c) {
    std::uint64_t sum = 0;
    for (std::size_t i = c * plane; i < (c + 1) * plane; ++i) sum += sums[i];
    const double values = samples * static_cast<double>(plane);
    const double mean = static_cast<double>(sum) / values;
    const double variance = static_cast<double>(squares[c]) / values - mean * mean;
    result.channel_mean.push_back(mean / kFullByte);
    result.channel_deviation.push_back(variance > 1e-6 ? std::sqrt(variance) / kFullByte : 1.0);
  }
  return result;
}

core::Result<ImageShape> output_shape(const PreprocessOptions& options, ImageShape source) {
  if (options.crop == 0) return source;
  const std::int64_t largest = std::min(source.height, source.width) + 2 * options.pad;
  if (options.crop > largest)
    return core::fail(core::Errc::config,
                      fmt::format("data.crop is {} and images are {} x {} with data.pad = {}: the largest crop is {}",
                                  options.crop, source.height, source.width, options.pad, largest));
  return ImageShape{source.channels, options.crop, options.crop};
}

core::Result<Preprocess> Preprocess::create(const PreprocessOptions& options, ImageShape source,
                                            const Statistics& statistics) {
  const auto output = troupe::data::output_shape(options, source);
  if (!output) return tl::unexpected(output.error());
  Preprocess result;
  result.options_ = options;
  result.source_ = source;
  result.output_ = *output;
  const std::size_t plane = positive(source.height * source.width);
  for (std::size_t c = 0; c < positive(source.channels); ++c) {
    const double deviation = options.normalise ? statistics.channel_deviation.at(c) : 1.0;
    result.scale_.push_back(static_cast<float>(1.0 / (kFullByte * deviation)));
    for (std::size_t i = c * plane; i < (c + 1) * plane; ++i) {
      const double mean = options.mean == Mean::none      ? 0.0
                          : options.mean == Mean::channel ? statistics.channel_mean.at(c)
                                                          : statistics.image_mean.at(i);
      result.bias_.push_back(static_cast<float>(-mean / deviation));
    }
  }
  return result;
}

View Preprocess::train_view(std::uint64_t seed, std::uint32_t epoch, std::int64_t sample) const {
  const std::int64_t room_y = source_.height + 2 * options_.pad - output_.height;
  const std::int64_t room_x = source_.width + 2 * options_.pad - output_.width;
  if (room_y == 0 && room_x == 0 && !options_.mirror) return {-options_.pad, -options_.pad, false};
  core::Random random(seed, core::Purpose::augment, std::uint64_t{epoch} << 40 | static_cast<std::uint64_t>(sample));
  View view;
  view.top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(room_y) + 1)) - options_.pad;
  view.left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(room_x) + 1)) - options_.pad;
  view.mirrored = random.below(2) == 1 && options_.mirror;
  return view;
}

View Preprocess::center_view() const noexcept {
  return {(source_.height + 2 * options_.pad - output_.height) / 2 - options_.pad,
          (source_.width + 2 * options_.pad - output_.width) / 2 - options_.pad, false};
}

void Preprocess::apply(std::span<const std::uint8_t> pixels, const View& view, std::span<float> out) const {
  if (pixels.size() != bias_.size() || out.size() != positive(output_.size()))
    throw std::invalid_argument(fmt::format("{} bytes into {} floats; expected {} and {}", pixels.size(), out.size(),
                                            bias_.size(), output_.size()));
  const std::size_t plane = positive(source_.height * source_.width);
  if (view == View{} && output_ == source_) {  // the whole image: no rows to cut
    for (std::size_t c = 0; c < scale_.size(); ++c)
      scale_bytes(pixels.data() + c * plane, bias_.data() + c * plane, scale_[c], out.data() + c * plane, plane);
    return;
  }
  // Columns [begin, end) of the output lie inside the source; the others are padding.
  const std::int64_t begin = std::clamp<std::int64_t>(-view.left, 0, output_.width);
  const std::int64_t end = std::clamp<std::int64_t>(source_.width - view.left, begin, output_.width);
  float* row = out.data();
  for (std::int64_t c = 0; c < output_.channels; ++c) {
    for (std::int64_t y = 0; y < output_.height; ++y, row += output_.width) {
      const std::int64_t source_y = y + view.top;
      if (source_y < 0 || source_y >= source_.height || begin == end) {
        std::fill_n(row, output_.width, 0.0f);
        continue;
      }
      const std::size_t from = positive((c * source_.height + source_y) * source_.width + view.left + begin);
      std::fill(row, row + begin, 0.0f);
      scale_bytes(pixels.data() + from, bias_.data() + from, scale_[positive(c)], row + begin, positive(end - begin));
      std::fill(row + end, row + output_.width, 0.0f);
      if (view.mirrored) std::reverse(row, row + output_.width);
    }
  }
}

}  // namespace troupe::data
