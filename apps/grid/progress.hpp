/// A grid's progress for people, on standard error: a line per run that begins or ends, and on a terminal one live line below
/// them. Not thread-safe.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/report/terminal.hpp"
#include "apps/grid/ledger.hpp"

namespace troupe::grid {

enum class ProgressMode : std::uint8_t {
  automatic,
  plain,
  quiet
};  ///< automatic: a live line where there is a terminal

/// Where a grid stands.
struct GridPosition {
  std::size_t runs = 0;
  std::size_t ended = 0;  // with a result, now or formerly
  std::size_t failed = 0;
  std::vector<std::string> running;  // names
  std::optional<double> left_s;      // forecast
};

class Progress {
 public:
  Progress(ProgressMode mode, std::FILE* stream);

  void line(const std::string& text);
  void began(const PlannedRun& run, bool resumed);
  void ended(const PlannedRun& run, const Outcome& outcome, double seconds, const GridPosition& position);
  void tick(const GridPosition& position);
  /// Takes the live line away.
  void close();

 private:
  void put(const report::StyledLine& line);

  bool quiet_;
  bool live_;
  bool color_;
  std::FILE* stream_;
  std::unique_ptr<report::LiveRegion> region_;
};

/// "12:34", or "unknown": of a forecast.
[[nodiscard]] std::string forecast_text(std::optional<double> seconds);

}  // namespace troupe::grid
