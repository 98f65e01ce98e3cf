#include "data/glyphs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "core/random.hpp"
#include "data/drawing/glyph_shapes.hpp"

namespace troupe::data {
namespace {

// The variation between samples of one digit. Calibrated for the hardness in the header: wider maps make the linear classifier
// worse, and much wider ones make 6 and 9, or 1 and 7, look the same.
constexpr double kTurn = 0.16;  // tangent of half the largest rotation: 18 degrees
constexpr double kShear = 0.30;
constexpr double kSizeLow = 0.165, kSizeHigh = 0.25;     // pixels per unit of the shapes' box
constexpr double kAspectLow = 0.75, kAspectHigh = 1.10;  // width over height
constexpr double kShift = 2.8;                           // pixels
constexpr double kShake = 5.5;                           // units of the shapes' box, per control point
constexpr double kPenLow = 0.6, kPenHigh = 1.5;          // pixels, half the line's width
constexpr double kBlurLow = 0.8, kBlurHigh = 1.8;        // pixels from full ink to none
constexpr double kInkLow = 130, kInkHigh = 255;
constexpr double kNoise = 45;  // largest amplitude, of 255
constexpr int kPieces = 8;     // straight pieces per curve

constexpr float kFar = 1e9f;  // squared distance of pixels far from every line

class Draw {
 public:
  Draw(std::uint64_t seed, Split split, std::int64_t index)
      : random_(seed, core::Purpose::glyphs,
                static_cast<std::uint64_t>(split) << 40 | static_cast<std::uint64_t>(index)) {}
  float between(double low, double high) { return static_cast<float>(random_.uniform(low, high)); }
  float around(double amplitude) { return between(-amplitude, amplitude); }
  std::size_t below(std::size_t bound) { return random_.below(bound); }
  std::uint32_t bits() { return random_.bits(); }

 private:
  core::Random random_;
};

/// Maps the shapes' box to pixels.
struct Affine {
  float xx, xy, yx, yy, x, y;
  [[nodiscard]] Point operator()(Point p) const { return {xx * p.x + xy * p.y + x, yx * p.x + yy * p.y + y}; }
};

Affine random_affine(Draw& draw) {
  // Sine and cosine from the tangent of half the angle: library functions may differ in the last bit.
  const float t = draw.around(kTurn);
  const float cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
  const float shear = draw.around(kShear);
  const float height = draw.between(kSizeLow, kSizeHigh), width = height * draw.between(kAspectLow, kAspectHigh);
  // rotation * shear * scale
  Affine map{cosine * width, (cosine * shear - sine) * height, sine * width, (sine * shear + cosine) * height, 0, 0};
  const Point center = map({50, 50});
  map.x = static_cast<float>(kGlyphSide) / 2 + draw.around(kShift) - center.x;
  map.y = static_cast<float>(kGlyphSide) / 2 + draw.around(kShift) - center.y;
  return map;
}

/// Squared distance of every pixel's centre to the nearest line, up to `reach` pixels.
class DistanceField {
 public:
  explicit DistanceField(float reach) : reach_(reach) { squared_.fill(kFar); }

  void add_line(Point from, Point to) {
    const auto [left, right] = pixels_near(std::min(from.x, to.x), std::max(from.x, to.x));
    const auto [top, bottom] = pixels_near(std::min(from.y, to.y), std::max(from.y, to.y));
    const float dx = to.x - from.x, dy = to.y - from.y;
    const float length = std::max(dx * dx + dy * dy, 1e-6f);
    const float along_x = dx / length, along_y = dy / length;
    for (int row = top; row < bottom; ++row) {
      const float y = static_cast<float>(row) + 0.5f - from.y;
      float* line = squared_.data() + row * kGlyphSide;
      for (int column = left; column < right; ++column) {
        const float x = static_cast<float>(column) + 0.5f - from.x;
        const float t = std::min(std::max(x * along_x + y * along_y, 0.0f), 1.0f);
        const float off_x = x - t * dx, off_y = y - t * dy;
        line[column] = std::min(line[column], off_x * off_x + off_y * off_y);
      }
    }
  }
  void add_curve(Point a, Point b, Point c, Point d) {
    Point from = a;
    for (int piece = 1; piece <= kPieces; ++piece) {
      const float t = static_cast<float>(piece) / kPieces, s = 1 - t;
      const float wa = s * s * s, wb = 3 * s * s * t, wc = 3 * s * t * t, wd = t * t * t;
      const Point to{wa * a.x + wb * b.x + wc * c.x + wd * d.x, wa * a.y + wb * b.y + wc * c.y + wd * d.y};
      add_line(from, to);
      from = to;
    }
  }
  [[nodiscard]] const std::array<float, kGlyphPixels>& squared() const { return squared_; }

 private:
  [[nodiscard]] std::pair<int, int> pixels_near(float low, float high) const {
    constexpr auto kSide = static_cast<float>(kGlyphSide);
    return {static_cast<int>(std::clamp(low - reach_, 0.0f, kSide)),
            static_cast<int>(std::clamp(high + reach_ + 1, 0.0f, kSide))};
  }
  float reach_;
  std::array<float, kGlyphPixels> squared_;  // [28, 28]
};

}  // namespace

std::int32_t draw_glyph(std::uint64_t seed, Split split, std::int64_t index,
                        std::span<std::uint8_t, kGlyphPixels> pixels) {
  const auto digit = static_cast<std::int32_t>(index % kGlyphClasses);
  Draw draw(seed, split, index);
  const auto shapes = glyph_shapes(digit);
  const auto& shape = shapes[draw.below(shapes.size())];
  const Affine map = random_affine(draw);
  const float pen = draw.between(kPenLow, kPenHigh), blur = draw.between(kBlurLow, kBlurHigh);
  const float ink = draw.between(kInkLow, kInkHigh), noise = draw.between(0, kNoise) / 255;

  DistanceField field(pen + blur);
  const auto shaken = [&](Point p) { return map({p.x + draw.around(kShake), p.y + draw.around(kShake)}); };
  for (const auto& stroke : shape.strokes) {
    Point from = shaken(stroke.points[0]);
    for (std::size_t i = 1; i + 2 < stroke.points.size(); i += 3) {
      const Point b = shaken(stroke.points[i]), c = shaken(stroke.points[i + 1]), to = shaken(stroke.points[i + 2]);
      field.add_curve(from, b, c, to);
      from = to;
    }
  }

  // Ink fades over `blur` pixels around the pen's edge; each word of the stream is the noise of four pixels.
  const float edge = pen + blur / 2;
  for (std::size_t i = 0; i < pixels.size(); i += 4) {
    const std::uint32_t word = draw.bits();
    for (std::size_t k = 0; k < 4; ++k) {
      const float covered = std::min(std::max((edge - std::sqrt(field.squared()[i + k])) / blur, 0.0f), 1.0f);
      const float value = ink * covered + noise * (static_cast<float>(word >> (8 * k) & 0xff) - 127.5f);
      pixels[i + k] = static_cast<std::uint8_t>(std::min(std::max(value + 0.5f, 0.0f), 255.0f));
    }
  }
  return digit;
}

GlyphDataset::GlyphDataset(std::uint64_t seed, Split split, std::int64_t limit, unsigned threads)
    : size_(split == Split::train ? kGlyphTrainSamples : kGlyphTestSamples) {
  if (limit > 0) size_ = std::min(size_, limit);
  pixels_.resize(static_cast<std::size_t>(size_ * kGlyphPixels));
  const auto draw_range = [this, seed, split](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      draw_glyph(seed, split, i,
                 std::span<std::uint8_t, kGlyphPixels>(pixels_.data() + i * kGlyphPixels, kGlyphPixels));
  };
  const auto parts = static_cast<std::int64_t>(std::max(threads, 1u));
  std::vector<std::jthread> others;
  for (std::int64_t part = 1; part < parts; ++part)
    others.emplace_back(draw_range, size_ * part / parts, size_ * (part + 1) / parts);
  draw_range(0, size_ / parts);
}

std::int32_t GlyphDataset::classes() const noexcept { return kGlyphClasses; }

core::Result<std::int32_t> GlyphDataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  if (index < 0 || index >= size_ || pixels.size() != static_cast<std::size_t>(kGlyphPixels))
    throw std::out_of_range(fmt::format("glyph {} of {} into {} bytes", index, size_, pixels.size()));
  std::memcpy(pixels.data(), pixels_.data() + index * kGlyphPixels, kGlyphPixels);
  return static_cast<std::int32_t>(index % kGlyphClasses);
}

}  // namespace troupe::data
