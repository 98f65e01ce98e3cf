/// A grid's progress for people, on standard error: a line per run that begins or ends, and on a terminal one live line below. Not
/// thread-safe.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
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
  std::vector<std::string> running;  // names
  std::optional<double> left_s;      // forecast
};

class Progress {
 public:
  Progress(ProgressMode mode, std::FILE* stream);

  void line(const std::string& text);
  void began(const GridRun& run, bool resumed);
  void ended(const GridRun& run, const RunStatus& run_status, double seconds, const GridPosition& position);
  void tick(const GridPosition& position);
  /// Removes the live line.
  void close();

 private:
  void put(const report::StyledLine& line);

  bool quiet_;
  bool live_;
  bool color_;
  std::FILE* stream_;
  std::unique_ptr<report::LiveRegion> region_;
};

/// A forecast as text: "12:34", or "unknown".
[[nodiscard]] std::string forecast_text(std::optional<double> seconds);

}  // namespace troupe::grid
