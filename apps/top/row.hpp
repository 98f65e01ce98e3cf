/// A line of the screen: styled pieces that know how many columns they fill. A value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/report/terminal.hpp"

namespace troupe::apps {

class ScreenRow {
 public:
  ScreenRow() = default;
  explicit ScreenRow(std::string_view text, report::Style style = report::Style::plain) { add(text, style); }

  /// Any text: what a terminal would obey is taken out.
  ScreenRow& add(std::string_view text, report::Style style = report::Style::plain);
  /// `text` in `columns` columns: cut, or filled with blanks after it, or before it with `right`.
  ScreenRow& cell(std::string_view text, std::size_t columns, bool right = true,
                  report::Style style = report::Style::plain);
  [[nodiscard]] std::size_t columns() const;
  /// Without a newline, cut after `columns`; styles as escape codes if `color`.
  [[nodiscard]] std::string render(std::size_t columns, bool color) const;

 private:
  struct Piece {
    std::string text;
    report::Style style;
  };
  std::vector<Piece> pieces_;
};

}  // namespace troupe::apps
