#include "core/text/display.hpp"

#include <locale.h>
#include <wchar.h>

namespace troupe::core {
namespace {

struct Decoded {
  char32_t point = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

Decoded decode(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = at(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  char32_t point = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) return {};
    point = point << 6U | (at(i) & 0x3FU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[bytes] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
  return {point, bytes};
}

bool controls(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029; }

bool reorders(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/// The locale of the process may be "C", in which nothing but ASCII has a width.
std::size_t columns_of_point(char32_t point) {
  if (point < 0x7F) return 1;
  static const ::locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const auto before = ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(point));
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const auto [point, bytes] = decode(text);
    if (bytes == 0)
      clean += kReplacement;
    else if (controls(point))
      clean += ' ';
    else if (!reorders(point))
      clean += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return clean;
}

std::size_t display_columns(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto [point, bytes] = decode(text.substr(i));
    columns += columns_of_point(bytes == 0 ? 0xFFFD : point);
    i += bytes == 0 ? 1 : bytes;
  }
  return columns;
}

std::string_view display_cut(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto [point, bytes] = decode(text.substr(i));
    used += columns_of_point(bytes == 0 ? 0xFFFD : point);
    if (used > columns) return text.substr(0, i);
    i += bytes == 0 ? 1 : bytes;
  }
  return text;
}

}  // namespace troupe::core
