#include "experiment/report/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::report {
namespace {

constexpr std::string_view kReset = "\x1b[0m", kHideCursor = "\x1b[?25l", kShowCursor = "\x1b[?25h",
                           kClearBelow = "\x1b[J";

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

StyledLine& StyledLine::add(std::string text, Style style) {
  pieces_.push_back({std::move(text), style});
  return *this;
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

std::string LiveRegion::erase() const {
  if (drawn_.empty()) return {};
  // A narrowed terminal has wrapped the lines.
  const std::size_t width = size().columns;
  std::size_t rows = 0;
  for (const auto columns : drawn_) rows += std::max<std::size_t>(1, (columns + width - 1) / width);
  return fmt::format("\r\x1b[{}A{}", rows, kClearBelow);
}

std::string LiveRegion::region(const TerminalSize& size) {
  std::string text;
  drawn_.clear();
  const std::size_t width = size.columns > 1 ? size.columns - 1 : 1;  // some terminals wrap at the last column
  const std::size_t count = std::min(lines_.size(), size.rows > 1 ? size.rows - 1 : 1);
  for (std::size_t i = lines_.size() - count; i < lines_.size(); ++i) {
    text += lines_[i].render(width, color_);
    text += '\n';
    drawn_.push_back(std::min(width, lines_[i].columns()));
  }
  return text;
}

void LiveRegion::draw(const std::vector<StyledLine>& lines) {
  std::string text = erase();
  if (!std::exchange(cursor_hidden_, true)) text += kHideCursor;
  lines_ = lines;
  text += region(size());
  write(text);
}

void LiveRegion::print(const StyledLine& line) {
  std::string text = erase();
  text += line.render(std::string::npos, color_);
  text += '\n';
  text += region(size());
  write(text);
}

void LiveRegion::close() {
  std::string text = erase();
  lines_.clear();
  drawn_.clear();
  if (std::exchange(cursor_hidden_, false)) text += kShowCursor;
  if (!text.empty()) write(text);
}

void LiveRegion::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

}  // namespace troupe::report
