/// Text of the console: the form of numbers, times and rows. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/report/loss_history.hpp"
#include "experiment/report/terminal.hpp"
#include "experiment/reports.hpp"

namespace troupe::report {

/// "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t number);
/// "1,234 workers", "1 worker".
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view noun);
/// "0:07", "12:34", "3:05:09"; "-:--" when unknown (negative or not finite).
[[nodiscard]] std::string clock_time(double seconds);
/// 0.0431, 12.3, 1.2e+07: four significant digits.
[[nodiscard]] std::string loss_text(double loss);
/// "-" before the first step: a worker without samples has no loss.
[[nodiscard]] std::string loss_text(const experiment::WorkerProgress& worker);
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
  double lr = -1;
};

[[nodiscard]] StyledLine started_line(const experiment::RunStarted& run);
[[nodiscard]] StyledLine directory_line(const std::string& directory);
/// Shortened where there are few columns.
[[nodiscard]] StyledLine worker_line(const experiment::WorkerProgress& worker, double images_per_s,
                                     std::size_t columns);
/// The curve of the training loss, its first and its last value, and the learning rate. Nothing while there are fewer than two values.
[[nodiscard]] std::optional<StyledLine> loss_line(const LossHistory& losses, double lr, std::size_t columns,
                                                  bool unicode);
/// The worker with the longest wait, its cause and its share of the time; nothing below one percent.
[[nodiscard]] std::optional<StyledLine> worst_wait_line(const std::vector<experiment::WorkerProgress>& workers);
/// Says that the workers waited for their loaders for more than a twentieth of their time; nothing if they did not.
[[nodiscard]] std::optional<StyledLine> slow_loading_line(const std::vector<experiment::WorkerProgress>& workers);
/// Staleness of a worker's updates, in versions of the centre: "0 12 %  1 60 %  2 28 %". Where there are few columns, the last values are
/// joined.
[[nodiscard]] StyledLine staleness_line(const experiment::WorkerProgress& worker, std::size_t columns);
/// A bar that fills what `before` and `after` leave of `columns`, in reason; `unicode` draws it with line characters instead of = and -.
[[nodiscard]] std::string bar(double done, std::size_t columns, const StyledLine& before,
                              const std::vector<std::string>& after, bool unicode);
/// The bar fills the rest of `columns`; `unicode` draws it with line characters instead of = and -.
[[nodiscard]] StyledLine bar_line(const Position& position, std::size_t columns, bool unicode);
/// `loss`: none before the first step.
[[nodiscard]] StyledLine progress_line(const Position& position, std::uint64_t steps, std::optional<double> loss);
[[nodiscard]] StyledLine epoch_line(const experiment::EpochReport& report);
[[nodiscard]] StyledLine evaluation_line(const experiment::EvaluationReport& report);
[[nodiscard]] StyledLine note_line(const experiment::Note& note);
/// Head, one row per worker (staleness: mean and, in brackets, maximum), the longest wait and its cause, the staleness of each worker's
/// updates, and the results of the run. Fits 80 columns; where there are fewer, rows have no seconds.
[[nodiscard]] std::vector<StyledLine> closing_table(const experiment::RunEnd& end, const std::string& directory,
                                                    std::size_t columns);

}  // namespace troupe::report
