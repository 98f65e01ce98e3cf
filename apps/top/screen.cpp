#include "apps/top/screen.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "apps/top/values.hpp"
#include "experiment/report/console_text.hpp"

namespace troupe::apps {
namespace {

using report::Style;

constexpr std::size_t kNotesBelow = 3;  // in the overview

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
  const auto notes = note_rows(state, kNotesBelow);
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

std::vector<ScreenRow> note_rows(const StateJson& state, std::size_t most) {
  std::vector<ScreenRow> rows;
  const auto& notes = list_at(state, "notes");
  rows.emplace_back("notes", Style::dim);
  for (std::size_t i = notes.size() - std::min(notes.size(), most); i < notes.size(); ++i) {
    const auto level = text_at(notes[i], "level");
    auto& row = rows.emplace_back();
    row.cell(report::clock_time(number_at(notes[i], "t").value_or(-1)), 9).add("  ");
    row.add((level == "warning" || level == "error" ? level + ": " : std::string()) + text_at(notes[i], "text"),
            level == "error"     ? Style::red
            : level == "warning" ? Style::yellow
                                 : Style::plain);
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
    body = note_rows(live.state, std::numeric_limits<std::size_t>::max());
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
  auto waits = wait_rows(live.state, columns, std::numeric_limits<std::size_t>::max());
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
  append(rows, note_rows(live.state, kNotes));
  return rows;
}

}  // namespace troupe::apps
