/// A grid's progress for people, on standard error: a line per run that begins or ends; for running ones live lines below on a terminal,
/// else a line every five seconds. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/grid/status_index.hpp"
#include "experiment/report/terminal.hpp"

namespace troupe::grid {

enum class ProgressMode : std::uint8_t { automatic, plain, quiet };  ///< automatic: a live line on a terminal

/// Progress of a grid.
struct GridPosition {
  std::size_t runs = 0;
  std::size_t ended = 0;  // with a result, from now or earlier
  std::size_t failed = 0;
  struct Running {
    std::string name;
    std::string progress;  // "epoch 2/3, 40 %, loss 0.0431"; empty: nothing is known yet
  };
  std::vector<Running> running;
  std::optional<double> left_s;  // forecast
  std::string note{};            // in place of the forecast
};

class Progress {
 public:
  Progress(ProgressMode mode, std::FILE* stream);

  void line(const std::string& text);
  void began(const GridRun& run, bool resumed);
  void ended(const GridRun& run, const RunStatus& run_status, double seconds, const GridPosition& position);
  /// Call it often: redraws the live lines, or writes a line per running run every five seconds.
  void tick(const GridPosition& position);
  /// Removes the live lines.
  void close();

 private:
  void put(const report::StyledLine& line);
  void tell(const GridPosition& position);

  bool quiet_;
  bool live_;
  bool color_;
  std::FILE* stream_;
  std::unique_ptr<report::LiveRegion> region_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();  // of the latest plain lines
};

/// How far a run is, from the last line of progress in what `troupe train --plain` has written; empty: it has written none.
[[nodiscard]] std::string progress_of(std::string_view plain_output);

/// A forecast as text: "12:34", or "unknown".
[[nodiscard]] std::string forecast_text(std::optional<double> seconds);

}  // namespace troupe::grid
