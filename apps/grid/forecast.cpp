#include "apps/grid/forecast.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::grid {

Forecast::Forecast(std::vector<double> estimates_s, std::size_t jobs)
    : expected_(std::move(estimates_s)), jobs_(static_cast<double>(std::max<std::size_t>(jobs, 1))) {
  const auto count = std::ranges::count_if(expected_, [](double s) { return s > 0; });
  known_ = count > 0;
  const double mean =
      known_ ? std::accumulate(expected_.begin(), expected_.end(), 0.0) / static_cast<double>(count) : 1.0;
  for (double& seconds : expected_)
    if (!(seconds > 0)) seconds = mean;
}

void Forecast::measured(std::size_t run, double seconds) {
  measured_s_ += seconds;
  measured_expected_ += expected_.at(run);
}

std::optional<double> Forecast::left(std::span<const Running> running, std::span<const std::size_t> waiting) const {
  if (!known_ && measured_expected_ == 0) return std::nullopt;
  const double correction = measured_expected_ > 0 ? measured_s_ / measured_expected_ : 1.0;
  double work = 0, longest = 0;
  const auto add = [&](double seconds) {
    work += seconds;
    longest = std::max(longest, seconds);
  };
  for (const auto& run : running) add(std::max(correction * expected_.at(run.run) - run.elapsed_s, 0.0));
  for (const auto run : waiting) add(correction * expected_.at(run));
  return std::max(work / jobs_, longest);
}

}  // namespace troupe::grid
