/// What a terminal of 80 columns shows after the bytes of a stream, and what it has scrolled into its history, for tests of its output. Like
/// tmux it moves the whole screen to the history before all of it is cleared at once.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::report {

/// A stream in memory.
class Capture {
 public:
  Capture() : stream_(::open_memstream(&bytes_, &size_)) {}
  ~Capture() {
    std::fclose(stream_);
    std::free(bytes_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  [[nodiscard]] std::FILE* stream() const { return stream_; }
  [[nodiscard]] std::string text() const {
    std::fflush(stream_);
    return {bytes_, size_};
  }

 private:
  char* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

struct Screen {
  std::vector<std::string> lines{""};  // the history's, then the screen's
  std::size_t row = 0;                 // of the cursor, in `lines`
  std::size_t top = 0;                 // the first line on the screen
  bool cursor_visible = true;

  explicit Screen(std::string_view bytes, std::size_t rows = 10'000) : rows_(rows) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char c = bytes[i];
      if (c == '\n') {
        ++row;
        column_ = 0;
        if (row == lines.size()) lines.emplace_back();
        if (row - top == rows_) ++top;
      } else if (c == '\r') {
        column_ = 0;
      } else if (c == '\x1b') {
        std::size_t end = i + 2;  // past the bracket
        while (end < bytes.size() && std::isalpha(static_cast<unsigned char>(bytes[end])) == 0) ++end;
        escape(bytes.substr(i + 2, end - i - 2), bytes[end]);
        i = end;
      } else {
        if (lines[row].size() <= column_) lines[row].resize(column_ + 1, ' ');
        lines[row][column_++] = c;
      }
    }
  }
  /// All lines down to the last one that is not empty.
  [[nodiscard]] std::vector<std::string> shown() const {
    auto all = lines;
    while (!all.empty() && all.back().empty()) all.pop_back();
    return all;
  }
  [[nodiscard]] std::vector<std::string> history() const {
    return {lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(top)};
  }

 private:
  void escape(std::string_view arguments, char command) {
    if (command == 'A') row -= std::min<std::size_t>(row - top, std::stoul(std::string(arguments)));
    if (command == 'K') lines[row].resize(std::min(lines[row].size(), column_));
    if (command == 'J' && row == top && column_ == 0) {
      top = row = lines.size();
      lines.emplace_back();
    } else if (command == 'J') {
      lines.resize(row + 1);
      lines[row].resize(column_);
    }
    if (arguments == "?25") cursor_visible = command == 'h';
  }
  std::size_t rows_;
  std::size_t column_ = 0;
};

}  // namespace troupe::report
