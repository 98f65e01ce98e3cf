#include "data/drawing/glyph_shapes.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace troupe::data {
namespace {

/// A digit and its strokes in the notation of SVG paths: M x y begins a stroke, L x y draws a line,
/// C x y x y x y a curve (two handles, then the end).
struct Drawing {
  std::int32_t digit;
  std::string_view path;
};

constexpr std::array kDrawings = {
    Drawing{0, "M 50 8 C 28 8 20 30 20 50 C 20 72 28 92 50 92 C 72 92 80 72 80 50 C 80 30 72 8 50 8"},
    Drawing{0, "M 60 12 C 40 4 26 24 24 48 C 22 76 32 92 48 92 C 68 92 76 70 74 44 C 73 24 64 10 46 12"},
    Drawing{0, "M 50 10 C 78 10 74 90 48 90 C 26 90 30 12 52 10"},
    Drawing{1, "M 50 8 L 50 92"},
    Drawing{1, "M 32 28 L 52 8 L 52 92"},
    Drawing{1, "M 32 26 L 52 8 L 52 92 M 30 92 L 74 92"},
    Drawing{2, "M 24 30 C 26 4 76 2 76 32 C 76 54 40 68 22 92 L 80 92"},
    Drawing{2, "M 26 24 C 34 2 76 6 72 32 C 68 60 44 82 32 88 C 18 94 18 76 32 78 C 50 82 60 98 82 86"},
    Drawing{2, "M 26 20 C 50 -2 80 14 72 40 C 66 58 40 74 24 90 C 44 82 60 92 82 88"},
    Drawing{3, "M 24 20 C 36 2 76 4 74 28 C 73 44 56 48 44 48 C 62 48 80 54 78 70 C 76 96 34 98 22 78"},
    Drawing{3, "M 24 10 L 74 10 L 46 42 C 70 40 82 56 78 72 C 72 96 34 96 22 80"},
    Drawing{3, "M 26 14 C 50 2 78 14 70 32 C 64 44 48 46 42 46 C 74 44 84 72 64 86 C 52 94 34 92 24 86"},
    Drawing{4, "M 62 92 L 62 8 L 20 64 L 82 64"},
    Drawing{4, "M 26 10 L 24 52 L 78 52 M 68 10 L 66 92"},
    Drawing{4, "M 32 8 C 30 26 24 40 22 54 C 40 58 60 54 80 50 M 70 20 L 58 94"},
    Drawing{5, "M 74 10 L 32 10 L 28 46 C 44 34 78 38 78 66 C 78 94 38 98 22 80"},
    Drawing{5, "M 34 12 L 28 46 C 50 38 76 46 74 68 C 72 94 40 96 22 84 M 34 12 L 78 8"},
    Drawing{5, "M 76 10 C 60 14 46 12 36 12 C 32 24 30 34 30 44 C 56 44 78 54 70 74 C 64 90 40 92 24 88"},
    Drawing{6, "M 68 10 C 40 18 22 46 22 68 C 22 98 76 98 76 68 C 76 42 30 42 24 70"},
    Drawing{6, "M 58 8 C 36 30 26 56 28 74 C 32 96 70 96 72 74 C 74 54 44 50 30 70"},
    Drawing{6, "M 44 8 C 28 34 20 60 30 80 C 44 100 78 84 70 62 C 62 46 36 58 30 78"},
    Drawing{7, "M 20 10 L 78 10 L 42 92"},
    Drawing{7, "M 22 12 L 76 12 C 64 36 50 60 44 92 M 30 50 L 72 50"},
    Drawing{7, "M 22 26 L 24 10 L 78 12 C 60 40 48 64 46 92"},
    Drawing{8, "M 50 48 C 20 40 22 8 50 8 C 78 8 80 40 50 48 C 14 58 18 92 50 92 C 82 92 86 58 50 48"},
    Drawing{8, "M 70 16 C 52 0 22 12 30 32 C 38 48 76 54 72 76 C 68 98 26 96 28 74 C 30 54 72 44 70 16"},
    Drawing{8, "M 50 46 C 28 42 28 10 50 10 C 72 10 72 42 50 46 M 50 46 C 20 50 22 92 50 92 C 78 92 80 50 50 46"},
    Drawing{9, "M 76 30 C 74 2 24 2 24 32 C 24 60 70 60 76 30 C 76 56 70 78 54 92"},
    Drawing{9, "M 72 36 C 60 60 26 54 26 32 C 26 4 72 4 74 30 L 72 92"},
    Drawing{9, "M 70 20 C 50 2 24 22 30 42 C 38 60 66 48 72 24 C 76 54 70 98 30 88"},
};

class PathParser {
 public:
  explicit PathParser(std::string_view path) : rest_(path) {}

  GlyphShape parse() {
    GlyphShape shape;
    for (char command = next_command(); command != '\0'; command = next_command()) {
      if (command == 'M') {
        shape.strokes.push_back({{point()}});
        continue;
      }
      auto& points = shape.strokes.back().points;
      if (command == 'C') {
        for (int i = 0; i < 3; ++i) points.push_back(point());
      } else {
        const Point from = points.back(), to = point();
        const Point step{(to.x - from.x) / 3, (to.y - from.y) / 3};
        points.insert(points.end(), {{from.x + step.x, from.y + step.y}, {to.x - step.x, to.y - step.y}, to});
      }
    }
    return shape;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  char next_command() {
    skip_blanks();
    if (rest_.empty()) return '\0';
    const char command = rest_.front();
    rest_.remove_prefix(1);
    return command;
  }
  float number() {
    skip_blanks();
    int value = 0;
    const auto parsed = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (parsed.ec != std::errc()) throw std::logic_error("a glyph's path is not well formed");
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest_.data()));
    return static_cast<float>(value);
  }
  Point point() {
    const float x = number();
    return {x, number()};
  }
  std::string_view rest_;
};

std::array<std::vector<GlyphShape>, kGlyphClasses> parse_all() {
  std::array<std::vector<GlyphShape>, kGlyphClasses> shapes;
  for (const auto& drawing : kDrawings)
    shapes[static_cast<std::size_t>(drawing.digit)].push_back(PathParser(drawing.path).parse());
  return shapes;
}

}  // namespace

std::span<const GlyphShape> glyph_shapes(std::int32_t digit) {
  static const auto shapes = parse_all();
  return shapes.at(static_cast<std::size_t>(digit));
}

}  // namespace troupe::data
