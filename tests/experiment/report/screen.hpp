/// The visible text of a terminal of 80 columns after the bytes of a stream, for tests of terminal output.
#pragma once

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
  std::vector<std::string> lines{""};
  std::size_t row = 0;
  bool cursor_visible = true;

  explicit Screen(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char c = bytes[i];
      if (c == '\n') {
        ++row;
        column_ = 0;
        if (row == lines.size()) lines.emplace_back();
      } else if (c == '\r') {
        column_ = 0;
      } else if (c == '\x1b') {
        std::size_t end = i + 2;  // past the bracket
        while (end < bytes.size() && std::isalpha(static_cast<unsigned char>(bytes[end])) == 0) ++end;
        escape(bytes.substr(i + 2, end - i - 2), bytes[end]);
        i = end;
      } else {
        lines[row].resize(column_);
        lines[row] += c;
        ++column_;
      }
    }
  }
  /// All lines down to the last one that is not empty.
  [[nodiscard]] std::vector<std::string> shown() const {
    auto all = lines;
    while (!all.empty() && all.back().empty()) all.pop_back();
    return all;
  }

 private:
  void escape(std::string_view arguments, char command) {
    if (command == 'A') row -= std::min<std::size_t>(row, std::stoul(std::string(arguments)));
    if (command == 'J') {
      lines.resize(row + 1);
      lines[row].resize(column_);
    }
    if (arguments == "?25") cursor_visible = command == 'h';
  }
  std::size_t column_ = 0;
};

}  // namespace troupe::report
