/// How long the rest of a grid takes: an estimate per run, corrected by what the runs that ended took. Not thread-safe.
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

  /// `estimates_s` [runs]: seconds each run is expected to take; 0: not known. `jobs` ≥ 1 run at once.
  Forecast(std::vector<double> estimates_s, std::size_t jobs);

  /// A run took so long from beginning to end. The ratio of measured to expected time corrects all the others.
  void measured(std::size_t run, double seconds);
  /// Seconds until the last run ends: the work that is left over `jobs`, or the longest run where that is more. Nothing while
  /// neither an estimate nor a measurement says anything.
  [[nodiscard]] std::optional<double> left(std::span<const Running> running,
                                           std::span<const std::size_t> waiting) const;

 private:
  std::vector<double> expected_;  // [runs] seconds, or parts of an unknown unit
  bool known_ = false;            // expected_ are seconds
  double jobs_;
  double measured_s_ = 0;
  double measured_expected_ = 0;
};

}  // namespace troupe::grid
