#include "experiment/sweep/parzen.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::sweep {
namespace {

constexpr double kPriorCenter = 0.5;
constexpr double kPriorDeviation = 1;
constexpr double kScott = 0.2;
constexpr std::size_t kNarrowest = 100;

/// Φ, of the standard normal distribution.
double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

struct Gaussian {
  double mean, deviation;
  /// Mass of an interval. Differences of the tails keep their digits on the side of 0 where they are small.
  [[nodiscard]] double mass(double low, double high) const {
    const double a = (low - mean) / deviation, b = (high - mean) / deviation;
    return a > 0 ? below(-a) - below(-b) : below(b) - below(a);
  }
  [[nodiscard]] double density(double x) const {
    const double z = (x - mean) / deviation;
    return std::exp(-0.5 * z * z) / (deviation * std::sqrt(2 * std::numbers::pi));
  }
};

}  // namespace

Parzen::Parzen(const Space& space, std::vector<Point> observed) : space_(space), observed_(std::move(observed)) {
  const auto n = static_cast<double>(std::max<std::size_t>(observed_.size(), 1));
  const double scott = kScott * std::pow(n, -1 / (static_cast<double>(space.size()) + 4));
  deviation_ = std::max(scott, 1.0 / static_cast<double>(std::min(kNarrowest, observed_.size() + 2)));
}

/// Null: the kernel is the prior, or its point has no such parameter.
const std::optional<double>* Parzen::center(std::size_t kernel, std::size_t parameter) const {
  if (kernel >= observed_.size()) return nullptr;
  const auto& value = observed_[kernel][parameter];
  return value ? &value : nullptr;
}

double Parzen::factor(std::size_t kernel, std::size_t parameter, double value) const {
  const auto& p = space_[parameter];
  const auto* own = center(kernel, parameter);
  if (p.kind == Kind::choice) {
    const auto count = static_cast<double>(p.choices.size());
    if (own == nullptr) return 1 / count;
    const double spread = 1 / (static_cast<double>(observed_.size()) + 1);
    return ((**own == value ? 1 : 0) + spread) / (1 + count * spread);
  }
  const Gaussian gaussian = own == nullptr ? Gaussian{kPriorCenter, kPriorDeviation}
                                           : Gaussian{space_.position(parameter, **own), deviation_};
  const double within = gaussian.mass(0, 1);
  if (p.kind == Kind::real) return gaussian.density(space_.position(parameter, value)) / within;
  const auto cell = space_.cell(parameter, value);
  return gaussian.mass(cell.low, cell.high) / within;
}

double Parzen::log_density(const Point& point) const {
  std::vector<double> logs;
  for (std::size_t kernel = 0; kernel <= observed_.size(); ++kernel) {
    double log = 0;
    for (std::size_t i = 0; i < space_.size(); ++i)
      if (point[i]) log += std::log(factor(kernel, i, *point[i]));
    logs.push_back(log);
  }
  // Products of many small factors: relative to the greatest.
  const double greatest = std::ranges::max(logs);
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - greatest);
  return greatest + std::log(sum / static_cast<double>(logs.size()));
}

double Parzen::marginal(std::size_t parameter, double value) const {
  double sum = factor(observed_.size(), parameter, value);
  double kernels = 1;
  for (std::size_t kernel = 0; kernel < observed_.size(); ++kernel) {
    if (center(kernel, parameter) == nullptr) continue;
    sum += factor(kernel, parameter, value);
    ++kernels;
  }
  return sum / kernels;
}

double Parzen::sample(std::size_t kernel, std::size_t parameter, core::Random& random) const {
  const auto& p = space_[parameter];
  const auto* own = center(kernel, parameter);
  if (p.kind == Kind::choice) {
    double left = random.uniform();
    for (std::size_t choice = 0; choice + 1 < p.choices.size(); ++choice) {
      left -= factor(kernel, parameter, static_cast<double>(choice));
      if (left < 0) return static_cast<double>(choice);
    }
    return static_cast<double>(p.choices.size() - 1);
  }
  if (own == nullptr) {  // nearly even: of ten draws seven are within
    double u = -1;
    while (!(u >= 0 && u <= 1)) u = kPriorCenter + kPriorDeviation * random.normal();
    return space_.at(parameter, u);
  }
  const double mean = space_.position(parameter, **own);
  double u = -1;
  while (!(u >= 0 && u <= 1)) u = mean + deviation_ * random.normal();  // at least half of the draws are within
  return space_.at(parameter, u);
}

Point Parzen::sample(core::Random& random) const {
  const auto kernel = static_cast<std::size_t>(random.below(observed_.size() + 1));
  Point point(space_.size());
  for (std::size_t i = 0; i < space_.size(); ++i)
    if (space_.exists(i, point)) point[i] = sample(kernel, i, random);
  return point;
}

}  // namespace troupe::sweep
