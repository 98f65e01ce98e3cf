/// Drawing for the console: lines of styled text, and a region at the bottom of a terminal that is redrawn in place while other lines
/// scroll above it. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::report {

enum class Style : unsigned char { plain, bold, dim, red, yellow, green, cyan };

/// A line of differently styled pieces. Columns are code points: the console's text has no wide characters.
class StyledLine {
 public:
  StyledLine() = default;
  explicit StyledLine(std::string text, Style style = Style::plain) { add(std::move(text), style); }
  StyledLine& add(std::string text, Style style = Style::plain);
  [[nodiscard]] std::size_t columns() const noexcept;
  /// The text without a newline, cut after `columns`; styles as escape codes if `color`.
  [[nodiscard]] std::string render(std::size_t columns, bool color) const;

 private:
  struct Piece {
    std::string text;
    Style style;
  };
  std::vector<Piece> pieces_;
};

/// Code points of `text`.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Lines that are redrawn in place. Each call writes all output at once, to avoid flicker. Hides the cursor while the region is drawn;
/// close() and the destructor show it again.
class LiveRegion {
 public:
  LiveRegion(std::FILE* stream, bool color) : stream_(stream), color_(color) {}
  ~LiveRegion() { close(); }
  LiveRegion(const LiveRegion&) = delete;
  LiveRegion& operator=(const LiveRegion&) = delete;

  /// Current size of the stream's terminal; 80 x 24 without one.
  [[nodiscard]] TerminalSize size() const noexcept;
  /// Replaces the drawn lines. Lines are cut to the terminal's width; at most the terminal's rows less one are drawn.
  void draw(const std::vector<StyledLine>& lines);
  /// Writes a permanent line above the region; it may wrap.
  void print(const StyledLine& line);
  /// Removes the region; the cursor is visible where the region began.
  void close();

 private:
  /// Escape codes from the line below the region to the region's first column, clearing it.
  [[nodiscard]] std::string erase() const;
  [[nodiscard]] std::string region(const TerminalSize& size);
  void write(const std::string& text);

  std::FILE* stream_;
  bool color_;
  bool cursor_hidden_ = false;
  std::vector<StyledLine> lines_;
  std::vector<std::size_t> drawn_;  // columns of each line on the screen
};

}  // namespace troupe::report
