/// Text of the console: the form of numbers, times and rows. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/report/terminal.hpp"
#include "experiment/reports.hpp"

namespace troupe::report {

/// "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t number);
/// "0:07", "12:34", "3:05:09"; "-:--" when unknown (negative or not finite).
[[nodiscard]] std::string clock_time(double seconds);
/// 0.0431, 12.3, 1.2e+07: four significant digits.
[[nodiscard]] std::string loss_text(double loss);
/// Whole percentages that add up to 100, unless all parts are zero.
[[nodiscard]] std::vector<int> percentages(const std::vector<double>& parts);

/// Progress of a run.
struct Position {
  std::uint32_t epoch = 1;  // the current epoch, from 1
  std::uint32_t epochs = 1;
  double fraction = 0;       // of that epoch, in [0, 1]
  double images_per_s = 0;   // all workers
  double epoch_left_s = -1;  // below 0: not known
  double run_left_s = -1;
};

[[nodiscard]] StyledLine started_line(const experiment::RunStarted& run);
/// Shortened where there are few columns.
[[nodiscard]] StyledLine worker_line(const experiment::WorkerProgress& worker, double images_per_s,
                                     std::size_t columns);
/// The worker with the longest wait, its cause and its share of the time; nothing below one percent.
[[nodiscard]] std::optional<StyledLine> worst_wait_line(const std::vector<experiment::WorkerProgress>& workers);
/// Staleness of a worker's updates, in versions of the centre: "0 12 %  1 60 %  2 28 %".
[[nodiscard]] StyledLine staleness_line(const experiment::WorkerProgress& worker);
/// The bar fills the rest of `columns`; `unicode` draws it with line characters instead of = and -.
[[nodiscard]] StyledLine bar_line(const Position& position, std::size_t columns, bool unicode);
[[nodiscard]] StyledLine progress_line(const Position& position, std::uint64_t steps, double loss);
[[nodiscard]] StyledLine epoch_line(const experiment::EpochReport& report);
[[nodiscard]] StyledLine note_line(const experiment::Note& note);
/// Head, one row per worker (staleness: mean and, in brackets, maximum), the longest wait and its cause, the staleness of each worker's
/// updates, and the results of the run. Fits 80 columns.
[[nodiscard]] std::vector<StyledLine> closing_table(const experiment::RunEnd& end, const std::string& directory);

}  // namespace troupe::report
