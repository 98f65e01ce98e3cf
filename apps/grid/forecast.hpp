/// The remaining time of a grid: an estimate per run, corrected by the times of ended runs. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace troupe::grid {

class Forecast {
 public:
  struct Running {
    std::size_t run = 0;
    double elapsed_s = 0;
  };

  /// `estimates_s` [runs]: expected seconds of each run; 0: unknown. `jobs` ≥ 1 run at once.
  Forecast(std::vector<double> estimates_s, std::size_t jobs);

  /// Records the duration of a run. The ratio of measured to expected time corrects all other estimates.
  void measured(std::size_t run, double seconds);
  /// Seconds until the last run ends: the remaining work divided by `jobs`, or the longest run if that is more. Nothing without an estimate
  /// or a measurement.
  [[nodiscard]] std::optional<double> left(std::span<const Running> running,
                                           std::span<const std::size_t> waiting) const;

 private:
  std::vector<double> expected_;  // [runs] seconds, or relative to an unknown unit
  bool known_ = false;            // expected_ are seconds
  double jobs_;
  double measured_s_ = 0;
  double measured_expected_ = 0;
};

}  // namespace troupe::grid
