/// The live state of a run as rows of text. Pure: no terminal, no clock. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/top/row.hpp"
#include "apps/top/view.hpp"

namespace troupe::apps {

/// What is looked at.
struct LiveView {
  std::string run;                 // its directory's name, as in the service
  std::string about;               // "easgd, lenet on mnist"; empty: not known
  std::string problem;             // why nothing newer is known; empty: there is none
  nlohmann::ordered_json state{};  // docs/formats/service.md, "State of a run"; null: nothing is known yet
};

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Exactly as many rows as the screen has, or fewer. Sets `view.page`, and lowers `view.scroll` to the last page. Values that are missing
/// or make no sense are shown as "-": a file may say anything.
[[nodiscard]] std::vector<ScreenRow> screen(const LiveView& live, View& view, const ScreenSize& size, bool unicode);

/// All of it for a pipe: the workers, who waits for whom, members, bytes, the latest notes. `columns` of the widest rows.
[[nodiscard]] std::vector<ScreenRow> whole(const LiveView& live, std::size_t columns);

// The parts, each with its heading.
[[nodiscard]] std::vector<ScreenRow> header_rows(const LiveView& live, std::size_t columns, bool unicode);
[[nodiscard]] std::vector<ScreenRow> worker_rows(const nlohmann::ordered_json& state, const View& view,
                                                 std::size_t columns);
/// The matrix, where it fits into `columns` and `rows`; else its largest entries, one a row.
[[nodiscard]] std::vector<ScreenRow> wait_rows(const nlohmann::ordered_json& state, std::size_t columns,
                                               std::size_t rows);
/// The latest `most` notes. A note that is longer than `columns` goes on below; `rows_each` is the most that one fills, the last ending in
/// "..." where there is more.
[[nodiscard]] std::vector<ScreenRow> note_rows(const nlohmann::ordered_json& state, std::size_t most,
                                               std::size_t columns, std::size_t rows_each);
/// How many take part, and of each worker that has come, gone or fallen silent in this session its last event.
[[nodiscard]] std::vector<ScreenRow> member_rows(const nlohmann::ordered_json& state);
[[nodiscard]] std::vector<ScreenRow> traffic_rows(const nlohmann::ordered_json& state);
[[nodiscard]] std::vector<ScreenRow> help_rows();

}  // namespace troupe::apps
