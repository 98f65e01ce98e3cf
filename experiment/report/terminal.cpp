#include "experiment/report/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace troupe::report {
namespace {

constexpr std::string_view kReset = "\x1b[0m", kHideCursor = "\x1b[?25l", kShowCursor = "\x1b[?25h",
                           kClearRestOfRow = "\x1b[K", kIndent = "  ";

std::string_view code(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::bold: return "\x1b[1m";
    case Style::dim: return "\x1b[2m";
    case Style::red: return "\x1b[31m";
    case Style::yellow: return "\x1b[33m";
    case Style::green: return "\x1b[32m";
    case Style::cyan: return "\x1b[36m";
  }
  return "";
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The beginning of `text` that fills at most `columns`.
std::string_view cut(std::string_view text, std::size_t columns) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!begins_character(text[i])) continue;
    if (columns == 0) return text.substr(0, i);
    --columns;
  }
  return text;
}

}  // namespace

std::size_t columns_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

bool is_live_terminal(std::FILE* stream) {
  const int fd = ::fileno(stream);
  const auto terminal = environment("TERM");
  return fd >= 0 && ::isatty(fd) == 1 && !terminal.empty() && terminal != "dumb";
}

bool allows_color() { return environment("NO_COLOR").empty(); }

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = environment(name);
    if (!value.empty()) return value.find("UTF-8") != value.npos || value.find("utf8") != value.npos;
  }
  return false;
}

StyledLine& StyledLine::add(std::string text, Style style) {
  pieces_.push_back({std::move(text), style, pieces_.empty()});
  return *this;
}

StyledLine& StyledLine::field(std::string text, Style style) {
  pieces_.push_back({std::move(text), style, true});
  return *this;
}

std::size_t StyledLine::next_field(std::size_t piece) const noexcept {
  do ++piece;
  while (piece < pieces_.size() && !pieces_[piece].begins_field);
  return piece;
}

StyledLine StyledLine::fitted(std::size_t columns) const {
  StyledLine line;
  std::size_t used = 0;
  for (std::size_t begin = 0; begin < pieces_.size();) {
    const std::size_t end = next_field(begin);
    for (std::size_t i = begin; i < end; ++i) used += columns_of(pieces_[i].text);
    if (used > columns && begin > 0) break;
    line.pieces_.insert(line.pieces_.end(), pieces_.begin() + static_cast<std::ptrdiff_t>(begin),
                        pieces_.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return line;
}

std::vector<StyledLine> StyledLine::wrapped(std::size_t columns) const {
  std::vector<StyledLine> lines(1);
  for (std::size_t begin = 0; begin < pieces_.size();) {
    const std::size_t end = next_field(begin);
    StyledLine next;
    next.pieces_.assign(pieces_.begin() + static_cast<std::ptrdiff_t>(begin),
                        pieces_.begin() + static_cast<std::ptrdiff_t>(end));
    if (begin > 0 && lines.back().columns() + next.columns() > columns) {
      auto& first = next.pieces_.front().text;
      if (first.starts_with(',')) lines.back().add(",");
      first.replace(0, std::min(first.find_first_not_of(", "), first.size()), kIndent);
      lines.emplace_back();
    }
    auto& line = lines.back().pieces_;
    line.insert(line.end(), next.pieces_.begin(), next.pieces_.end());
    begin = end;
  }
  return lines;
}

std::size_t StyledLine::columns() const noexcept {
  std::size_t sum = 0;
  for (const auto& piece : pieces_) sum += columns_of(piece.text);
  return sum;
}

std::string StyledLine::render(std::size_t columns, bool color) const {
  std::string out;
  for (const auto& piece : pieces_) {
    const auto text = cut(piece.text, columns);
    columns -= columns_of(text);
    if (text.empty()) continue;
    const bool styled = color && piece.style != Style::plain;
    if (styled) out += code(piece.style);
    out += text;
    if (styled) out += kReset;
  }
  return out;
}

TerminalSize LiveRegion::size() const noexcept {
  winsize window{};
  const int fd = ::fileno(stream_);
  if (fd < 0 || ::ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {window.ws_col, window.ws_row};
}

std::size_t LiveRegion::drawn_rows(const TerminalSize& size) const {
  // A narrowed terminal has wrapped the lines.
  std::size_t rows = 0;
  for (const auto columns : drawn_) rows += std::max<std::size_t>(1, (columns + size.columns - 1) / size.columns);
  return std::min(rows, size.rows > 1 ? size.rows - 1 : 1);
}

/// Clears row by row: before tmux clears a whole screen at once, it copies the screen to its history.
std::string LiveRegion::redraw(const StyledLine* above) {
  const auto size = this->size();
  const std::size_t before = drawn_rows(size);
  std::size_t written = 0;
  std::string text;
  const auto put = [&](const StyledLine& line, std::size_t width) {
    text += line.render(width, color_);
    const std::size_t columns = std::min(width, line.columns());
    // After a full row the cursor still stands in its last column.
    if (columns == 0 || columns % size.columns != 0) text += kClearRestOfRow;
    text += '\n';
    written += std::max<std::size_t>(1, (columns + size.columns - 1) / size.columns);
    return columns;
  };
  if (before > 0) text += fmt::format("\r\x1b[{}A", before);
  if (above) put(*above, std::string::npos);
  drawn_.clear();
  const std::size_t width = size.columns > 1 ? size.columns - 1 : 1;  // some terminals wrap at the last column
  const std::size_t count = std::min(lines_.size(), size.rows > 1 ? size.rows - 1 : 1);
  for (std::size_t i = lines_.size() - count; i < lines_.size(); ++i)
    drawn_.push_back(put(lines_[i].fitted(width), width));
  if (before <= written) return text;
  for (std::size_t row = written; row < before; ++row) text.append(kClearRestOfRow).append("\n");
  return text + fmt::format("\x1b[{}A", before - written);
}

void LiveRegion::draw(const std::vector<StyledLine>& lines) {
  lines_ = lines;
  const bool hide = cursor_ == Cursor::hidden && !std::exchange(cursor_hidden_, true);
  std::string text(hide ? kHideCursor : "");
  write(text += redraw(nullptr));
}

/// Without a region nothing is cleared: the stream may be no terminal.
void LiveRegion::print(const StyledLine& line) {
  write(drawn_.empty() ? line.render(std::string::npos, color_) + '\n' : redraw(&line));
}

void LiveRegion::close() {
  lines_.clear();
  std::string text = redraw(nullptr);
  if (std::exchange(cursor_hidden_, false)) text += kShowCursor;
  if (!text.empty()) write(text);
}

void LiveRegion::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

}  // namespace troupe::report
