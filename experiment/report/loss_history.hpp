/// The training loss from step to step, in a bounded number of points of equal size: when they are full, neighbours are joined. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::report {

class LossHistory {
 public:
  /// The mean loss over so many samples. What is not finite is left out.
  void add(double loss, std::uint64_t samples);
  [[nodiscard]] std::size_t points() const noexcept { return points_.size(); }
  /// The losses of `count` parts of equal length, oldest first; all points if there are fewer.
  [[nodiscard]] std::vector<double> means(std::size_t count) const;

  static constexpr std::size_t kMostPoints = 256;

 private:
  struct Point {
    double sum = 0;  // Σ over samples
    std::uint64_t samples = 0;
  };
  void halve();
  std::vector<Point> points_;
  std::uint64_t samples_per_point_ = 1;
};

/// One character per number, from the lowest to the highest of them; `unicode`: block characters instead of ASCII.
[[nodiscard]] std::string sparkline(const std::vector<double>& numbers, bool unicode);

}  // namespace troupe::report
