#include "apps/top/screen.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "apps/top/values.hpp"
#include "core/text/display.hpp"
#include "experiment/report/console_text.hpp"

namespace troupe::apps {
namespace {

using report::Style;

constexpr std::size_t kNotesBelow = 3;  // in the overview
constexpr std::size_t kAllRows = std::numeric_limits<std::size_t>::max();

ScreenRow tabs_row(const View& view) {
  ScreenRow row;
  for (std::size_t i = 0; i < kTabNames.size(); ++i) {
    const bool chosen = !view.help && static_cast<std::size_t>(view.tab) == i;
    row.add(chosen ? fmt::format("[{}]", kTabNames[i]) : fmt::format(" {} ", kTabNames[i]),
            chosen ? Style::bold : Style::dim);
  }
  return row;
}

ScreenRow keys_row(const View& view, std::size_t below) {
  return ScreenRow(fmt::format("q quit  tab view  s sort: {}{}  arrows scroll{}  ? help",
                               kSortNames.at(static_cast<std::size_t>(view.sort)), view.reversed ? ", reversed" : "",
                               below > 0 ? fmt::format(" ({} more below)", below) : ""),
                   Style::dim);
}

/// `text` in lines of at most `columns`, broken at blanks where a line has one; at most `most` lines, the last with "..." if more would follow.
std::vector<std::string> broken(std::string_view text, std::size_t columns, std::size_t most) {
  constexpr std::string_view kMore = "...";
  const auto clean = core::printable(text);
  std::vector<std::string> lines;
  for (std::string_view rest = clean; !rest.empty() || lines.empty();) {
    if (core::display_columns(rest) <= columns || columns <= kMore.size()) {  // else any character fits a line
      lines.emplace_back(rest);
      break;
    }
    if (lines.size() + 1 == most) {
      lines.push_back(std::string(core::display_cut(rest, columns - kMore.size())).append(kMore));
      break;
    }
    const auto fitting = core::display_cut(rest, columns);
    const auto blank = rest[fitting.size()] == ' ' ? fitting.size() : fitting.rfind(' ');
    const auto end = blank == std::string_view::npos || blank == 0 ? fitting.size() : blank;
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  return lines;
}

void append(std::vector<ScreenRow>& rows, std::vector<ScreenRow> more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Workers above, the matrix below where both fit; then the latest notes. Only the workers scroll.
struct Overview {
  std::vector<ScreenRow> workers, below;
};

Overview overview_of(const StateJson& state, const View& view, std::size_t columns, std::size_t rows) {
  constexpr std::size_t kFewestWaits = 3;
  Overview parts{.workers = worker_rows(state, view, columns), .below = {}};
  const auto notes = note_rows(state, kNotesBelow, columns, 1);
  const bool has_notes = !list_at(state, "notes").empty() && rows > 4 * kNotesBelow;
  const auto for_notes = has_notes ? notes.size() : 0;
  const auto at_most_workers = std::min(parts.workers.size(), std::max<std::size_t>((rows - for_notes) / 2, 2));
  const auto room = rows - std::min(rows, for_notes + at_most_workers + 1);
  if (room > kFewestWaits) {
    auto waits = wait_rows(state, columns, room);
    waits.resize(std::min(waits.size(), room));
    parts.below.emplace_back();
    append(parts.below, std::move(waits));
  }
  if (has_notes) append(parts.below, notes);
  return parts;
}

}  // namespace

std::vector<ScreenRow> note_rows(const StateJson& state, std::size_t most, std::size_t columns, std::size_t rows_each) {
  constexpr std::size_t kTime = 11;  // columns before the text
  std::vector<ScreenRow> rows;
  const auto& notes = list_at(state, "notes");
  rows.emplace_back("notes", Style::dim);
  for (std::size_t i = notes.size() - std::min(notes.size(), most); i < notes.size(); ++i) {
    const auto level = text_at(notes[i], "level");
    const auto style = level == "error" ? Style::red : level == "warning" ? Style::yellow : Style::plain;
    const auto text =
        (level == "warning" || level == "error" ? level + ": " : std::string()) + text_at(notes[i], "text");
    auto parts = broken(text, columns - std::min(columns, kTime), rows_each);
    rows.emplace_back().cell(time_value(notes[i]), kTime - 2).add("  ");
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (part > 0) rows.emplace_back(std::string(kTime, ' '));
      rows.back().add(parts[part], style);
    }
  }
  if (notes.empty()) rows.emplace_back("none so far", Style::dim);
  return rows;
}

std::vector<ScreenRow> help_rows() {
  std::vector<ScreenRow> rows;
  for (const auto* line :
       {"q, Ctrl-C         quit", "tab, 1 to 5       the next view, or that one", "arrows, j, k      scroll by a row",
        "space, b          scroll by a page", "g, G              to the top, to the bottom",
        "s                 sort workers by rank, rate, wait, staleness or last report",
        "r                 the other way round", "Ctrl-Z            suspend", "Ctrl-L            draw again",
        "?                 this help", "", "compute, exchange, wait, load: shares of the worker's time so far",
        "staleness: the mean, and in brackets the maximum, in versions of the centre",
        "report: since its last report; the row is yellow after 10 s of silence",
        "waits: seconds that the worker of the row waited for the member of the column"})
    rows.emplace_back(line);
  return rows;
}

std::vector<ScreenRow> screen(const LiveView& live, View& view, const ScreenSize& size, bool unicode) {
  auto rows = header_rows(live, size.columns, unicode);
  rows.push_back(tabs_row(view));
  const auto used = rows.size() + 1;  // and the row of keys
  const auto room = std::max<std::size_t>(size.rows - std::min(size.rows, used), 1);
  std::vector<ScreenRow> body, fixed;
  std::size_t heads = 1;  // rows of the body that do not scroll
  if (view.help) {
    body = help_rows();
    heads = 0;
  } else if (view.tab == Tab::overview) {
    auto parts = overview_of(live.state, view, size.columns, room);
    body = std::move(parts.workers);
    fixed = std::move(parts.below);
  } else if (view.tab == Tab::workers) {
    body = worker_rows(live.state, view, size.columns);
  } else if (view.tab == Tab::waits) {
    body = wait_rows(live.state, size.columns, room);
  } else if (view.tab == Tab::members) {
    body = traffic_rows(live.state);
    body.emplace_back();
    append(body, member_rows(live.state));
  } else {
    body = note_rows(live.state, kAllRows, size.columns, kAllRows);
  }
  const auto body_room = std::max<std::size_t>(room - std::min(room, fixed.size()), 1);
  heads = std::min({heads, body.size(), body_room - 1});
  view.page = std::max<std::size_t>(body_room - heads, 1);
  const auto scrolled = body.size() - heads;
  view.scroll = std::min(view.scroll, scrolled - std::min(scrolled, view.page));
  const auto end = std::min(heads + view.scroll + view.page, body.size());
  for (std::size_t i = 0; i < heads; ++i) rows.push_back(std::move(body[i]));
  for (std::size_t i = heads + view.scroll; i < end; ++i) rows.push_back(std::move(body[i]));
  append(rows, std::move(fixed));
  if (rows.size() + 1 < size.rows) rows.resize(size.rows - 1);
  rows.resize(std::min(rows.size(), size.rows > 1 ? size.rows - 1 : 1));
  if (size.rows > 1) rows.push_back(keys_row(view, body.size() - end));
  return rows;
}

std::vector<ScreenRow> whole(const LiveView& live, std::size_t columns) {
  constexpr std::size_t kLongestList = 20, kNotes = 10;
  auto rows = header_rows(live, columns, false);
  if (!live.state.is_object()) return rows;
  rows.emplace_back();
  append(rows, worker_rows(live.state, View{}, columns));
  rows.emplace_back();
  auto waits = wait_rows(live.state, columns, kAllRows);
  const auto members = list_at(live.state, "workers").size() + 1;
  waits.resize(std::min(waits.size(), std::max(kLongestList, members)));
  append(rows, std::move(waits));
  rows.emplace_back();
  append(rows, traffic_rows(live.state));
  rows.emplace_back();
  auto member_list = member_rows(live.state);
  member_list.resize(std::min(member_list.size(), std::max(kLongestList, members)));
  append(rows, std::move(member_list));
  rows.emplace_back();
  append(rows, note_rows(live.state, kNotes, kAllRows, 1));
  return rows;
}

}  // namespace troupe::apps
