/// What the user looks at, and how keys change it. Pure: no terminal. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::apps {

enum class Key : std::uint8_t {
  none,
  quit,
  suspend,
  redraw,
  help,
  escape,
  next_tab,
  previous_tab,
  first_tab,
  second_tab,
  third_tab,
  fourth_tab,
  fifth_tab,
  sort,
  reverse,
  up,
  down,
  page_up,
  page_down,
  home,
  end
};

/// Keys from the bytes that a terminal sends.
class KeyReader {
 public:
  /// `pause`: no byte came for a while, so an escape that waits is the key Escape.
  [[nodiscard]] std::vector<Key> read(std::string_view bytes, bool pause = false);
  [[nodiscard]] bool waits() const noexcept { return !held_.empty(); }

 private:
  std::string held_;  // of an escape sequence
};

enum class Tab : std::uint8_t { overview, workers, waits, notes, members };
inline constexpr std::array kTabNames{"overview", "workers", "waits", "notes", "members"};

/// By what workers are sorted: the worst first, but ranks from 0 on.
enum class Sort : std::uint8_t { rank, rate, wait, staleness, report };
inline constexpr std::array kSortNames{"rank", "rate", "wait", "staleness", "report"};

struct View {
  Tab tab = Tab::overview;
  Sort sort = Sort::rank;
  bool reversed = false;
  bool help = false;
  std::size_t scroll = 0;  // rows above the first one that is shown
  std::size_t page = 1;    // rows that are shown: set by screen()

  /// Not for quit, suspend and redraw, which are the loop's.
  void press(Key key);
};

}  // namespace troupe::apps
