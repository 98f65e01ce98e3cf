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

/// A line of fields, which consist of differently styled pieces. A line that is too long is shortened or broken between fields. Columns
/// are code points: the console's text has no wide characters.
class StyledLine {
 public:
  StyledLine() = default;
  explicit StyledLine(std::string text, Style style = Style::plain) { add(std::move(text), style); }
  /// Continues the last field.
  StyledLine& add(std::string text, Style style = Style::plain);
  /// Begins a field; its text has the separator before it: "  " or ", ".
  StyledLine& field(std::string text, Style style = Style::plain);
  [[nodiscard]] std::size_t columns() const noexcept;
  /// Without the last fields, as many as make it fit. The first field stays, and may be too long.
  [[nodiscard]] StyledLine fitted(std::size_t columns) const;
  /// Broken between fields into lines that fit, the second and later ones indented. A single field may be too long.
  [[nodiscard]] std::vector<StyledLine> wrapped(std::size_t columns) const;
  /// The text without a newline, cut after `columns`; styles as escape codes if `color`.
  [[nodiscard]] std::string render(std::size_t columns, bool color) const;

 private:
  struct Piece {
    std::string text;
    Style style;
    bool begins_field;
  };
  /// Where the field that follows the piece begins; all pieces: none follows.
  [[nodiscard]] std::size_t next_field(std::size_t piece) const noexcept;
  std::vector<Piece> pieces_;
};

/// Code points of `text`.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// Whether lines can be redrawn in place there: a terminal, and not a dumb one.
[[nodiscard]] bool is_live_terminal(std::FILE* stream);
/// Whether the environment allows colours: NO_COLOR is empty.
[[nodiscard]] bool allows_color();
/// Whether the environment's character set is UTF-8.
[[nodiscard]] bool speaks_utf8();

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// The cursor while a LiveRegion is drawn. Hidden it does not flicker; a program that a signal may end without close() leaves it shown.
enum class Cursor : bool { hidden, shown };

/// Lines that are redrawn in place. Each call writes all output at once, to avoid flicker. Hides the cursor while the region is drawn;
/// close() and the destructor show it again. Only permanent lines reach the terminal's history.
class LiveRegion {
 public:
  LiveRegion(std::FILE* stream, bool color, Cursor cursor = Cursor::hidden)
      : stream_(stream), color_(color), cursor_(cursor) {}
  ~LiveRegion() { close(); }
  LiveRegion(const LiveRegion&) = delete;
  LiveRegion& operator=(const LiveRegion&) = delete;

  /// Current size of the stream's terminal; 80 x 24 without one.
  [[nodiscard]] TerminalSize size() const noexcept;
  /// Replaces the drawn lines. Lines lose the fields that do not fit the terminal; at most the terminal's rows less one are drawn.
  void draw(const std::vector<StyledLine>& lines);
  /// Writes a permanent line above the region; it may wrap.
  void print(const StyledLine& line);
  /// Removes the region; the cursor is visible where the region began.
  void close();

 private:
  /// Screen rows above the cursor that the region fills.
  [[nodiscard]] std::size_t drawn_rows(const TerminalSize& size) const;
  /// Writes `above`, then the lines, over the region.
  [[nodiscard]] std::string redraw(const StyledLine* above);
  void write(const std::string& text);

  std::FILE* stream_;
  bool color_;
  Cursor cursor_;  // while lines are drawn
  bool cursor_hidden_ = false;
  std::vector<StyledLine> lines_;
  std::vector<std::size_t> drawn_;  // columns of each line on the screen
};

}  // namespace troupe::report
