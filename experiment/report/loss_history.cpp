#include "experiment/report/loss_history.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe::report {

void LossHistory::add(double loss, std::uint64_t samples) {
  if (!std::isfinite(loss) || samples == 0) return;
  if (points_.empty() || points_.back().samples >= samples_per_point_) {
    if (points_.size() == kMostPoints) halve();
    points_.emplace_back();
  }
  auto& last = points_.back();
  last.sum += loss * static_cast<double>(samples);
  last.samples += samples;
}

void LossHistory::halve() {
  for (std::size_t i = 0; 2 * i < points_.size(); ++i) {
    points_[i] = points_[2 * i];
    if (2 * i + 1 == points_.size()) continue;
    points_[i].sum += points_[2 * i + 1].sum;
    points_[i].samples += points_[2 * i + 1].samples;
  }
  points_.resize((points_.size() + 1) / 2);
  samples_per_point_ = points_.front().samples;
}

std::vector<double> LossHistory::means(std::size_t count) const {
  count = std::min(count, points_.size());
  std::vector<double> means;
  for (std::size_t part = 0; part < count; ++part) {
    Point whole;
    for (std::size_t i = part * points_.size() / count; i < (part + 1) * points_.size() / count; ++i) {
      whole.sum += points_[i].sum;
      whole.samples += points_[i].samples;
    }
    means.push_back(whole.sum / static_cast<double>(whole.samples));
  }
  return means;
}

std::string sparkline(const std::vector<double>& numbers, bool unicode) {
  static constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kAscii{"_", ".", ":", "-", "=", "+", "*", "#"};
  if (numbers.empty()) return {};
  const auto [lowest, highest] = std::ranges::minmax(numbers);
  std::string text;
  for (const double number : numbers) {
    const double height = highest > lowest ? (number - lowest) / (highest - lowest) : 0;
    const auto level = static_cast<std::size_t>(std::lround(height * static_cast<double>(kBlocks.size() - 1)));
    text += (unicode ? kBlocks : kAscii)[level];
  }
  return text;
}

}  // namespace troupe::report
