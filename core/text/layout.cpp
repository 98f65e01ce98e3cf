#include "core/text/layout.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe::core {

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent, std::size_t used) {
  std::string lines;
  bool begun = false;  // a word stands on this line
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    const auto word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const auto width = text_width(word);
    if (begun && used + 1 + width > columns) {
      lines.append("\n").append(indent, ' ');
      used = indent;
      begun = false;
    }
    if (begun) lines += ' ';
    lines += word;
    used += width + (begun ? 1 : 0);
    begun = true;
  }
  return lines;
}

std::string list_row(std::string_view left, std::string_view right, std::size_t at, std::size_t columns) {
  std::string row = "  " + std::string(left);
  const auto used = text_width(row);
  if (right.empty()) return row + "\n";
  if (used + 2 > at)
    row.append("\n").append(at, ' ');
  else
    row.append(at - used, ' ');
  return row + wrapped(right, columns, at, at) + "\n";
}

std::string readable(double number) {
  constexpr double kMostDigits = 1e15;
  constexpr double kSmallest = 1e-6;
  const double size = std::abs(number);
  if (number == std::floor(number) && size < kMostDigits) {
    auto digits = fmt::format("{:.0f}", size);
    if (size >= 10'000)
      for (auto at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
    return number < 0 ? "-" + digits : digits;
  }
  if (size >= kSmallest && size < 1) {
    auto digits = fmt::format("{:.9f}", number);
    digits.erase(digits.find_last_not_of('0') + 1);
    return digits;
  }
  auto text = fmt::format("{}", number);
  std::erase(text, '+');
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace troupe::core
