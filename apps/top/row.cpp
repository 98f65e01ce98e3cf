#include "apps/top/row.hpp"

#include <algorithm>

#include "core/text/display.hpp"

namespace troupe::apps {

ScreenRow& ScreenRow::add(std::string_view text, report::Style style) {
  pieces_.push_back({core::printable(text), style});
  return *this;
}

ScreenRow& ScreenRow::cell(std::string_view text, std::size_t columns, bool right, report::Style style) {
  const auto clean = core::printable(text);
  std::string part(core::display_cut(clean, columns));
  const std::string blanks(columns - std::min(core::display_columns(part), columns), ' ');
  return add(right ? blanks + part : part + blanks, style);
}

std::size_t ScreenRow::columns() const {
  std::size_t columns = 0;
  for (const auto& piece : pieces_) columns += core::display_columns(piece.text);
  return columns;
}

std::string ScreenRow::render(std::size_t columns, bool color) const {
  report::StyledLine line;
  for (const auto& piece : pieces_) {
    const auto part = core::display_cut(piece.text, columns);
    columns -= core::display_columns(part);
    line.add(std::string(part), piece.style);
    if (part.size() < piece.text.size()) break;
  }
  return line.render(std::string::npos, color);
}

}  // namespace troupe::apps
