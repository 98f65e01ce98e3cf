/// What the console draws with: lines of styled text, and a region of lines at the bottom of a terminal that is drawn over
/// itself while other lines scroll by above it. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::report {

enum class Style : unsigned char { plain, bold, dim, red, yellow, green, cyan };

/// A line made of differently styled pieces. Columns are counted as code points: the text here has no wide characters.
class StyledLine {
 public:
  StyledLine() = default;
  explicit StyledLine(std::string text, Style style = Style::plain) { add(std::move(text), style); }
  StyledLine& add(std::string text, Style style = Style::plain);
  [[nodiscard]] std::size_t columns() const noexcept;
  /// The text without its line's end, cut after `columns`; styles as escape codes when `color`.
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

/// Lines that are redrawn in place. Everything goes out in one write per call, so that nothing flickers. Hides the cursor
/// while something is drawn and shows it again when closed or destroyed.
class LiveRegion {
 public:
  LiveRegion(std::FILE* stream, bool color) : stream_(stream), color_(color) {}
  ~LiveRegion() { close(); }
  LiveRegion(const LiveRegion&) = delete;
  LiveRegion& operator=(const LiveRegion&) = delete;

  /// Of the terminal behind the stream as it is now; 80 x 24 where there is none.
  [[nodiscard]] TerminalSize size() const noexcept;
  /// Replaces what is drawn. Lines are cut to the terminal's width, and there are at most as many as it has rows less one.
  void draw(const std::vector<StyledLine>& lines);
  /// Writes a line above the region, where it stays; it may wrap.
  void print(const StyledLine& line);
  /// Takes the region away; the cursor is visible, where the region began.
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
