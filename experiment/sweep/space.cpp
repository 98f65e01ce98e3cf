#include "experiment/sweep/space.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/config/config.hpp"

namespace troupe::sweep {
namespace {

constexpr double kHalf = 0.5;
constexpr int kDigits = 4;

double scaled(const Parameter& parameter, double value) { return parameter.log ? std::log(value) : value; }

/// Four significant digits of what tells the values of the range apart.
double readable(const Parameter& parameter, double value) {
  const double span = parameter.log ? std::min(value, parameter.high - parameter.low) : parameter.high - parameter.low;
  const int digits = kDigits - 1 - static_cast<int>(std::floor(std::log10(span)));
  // Through text: the nearest number to a short decimal has a short text, which the product with a power of ten need not have.
  return std::stod(fmt::format("{:.{}f}", value, std::clamp(digits, 0, 300)));
}

}  // namespace

double Space::low_edge(std::size_t i) const {
  const auto& p = parameters_[i];
  return scaled(p, p.kind == Kind::integer ? p.low - kHalf : p.low);
}

double Space::high_edge(std::size_t i) const {
  const auto& p = parameters_[i];
  return scaled(p, p.kind == Kind::integer ? p.high + kHalf : p.high);
}

bool Space::exists(std::size_t i, const Point& point) const {
  const auto& p = parameters_[i];
  if (!p.depends_on) return true;
  const auto& other = point[*p.depends_on];
  return other && std::ranges::find(p.when, static_cast<std::size_t>(*other)) != p.when.end();
}

double Space::at(std::size_t i, double u) const {
  const auto& p = parameters_[i];
  if (p.kind == Kind::choice) {
    const auto count = static_cast<double>(p.choices.size());
    return std::min(std::floor(u * count), count - 1);
  }
  const double along = low_edge(i) + u * (high_edge(i) - low_edge(i));
  const double value = p.log ? std::exp(along) : along;
  return std::clamp(p.kind == Kind::integer ? std::round(value) : readable(p, value), p.low, p.high);
}

double Space::position(std::size_t i, double value) const {
  return std::clamp((scaled(parameters_[i], value) - low_edge(i)) / (high_edge(i) - low_edge(i)), 0.0, 1.0);
}

Cell Space::cell(std::size_t i, double value) const {
  const auto& p = parameters_[i];
  if (p.kind == Kind::choice) {
    const auto count = static_cast<double>(p.choices.size());
    return {value / count, (value + 1) / count};
  }
  return {position(i, value - kHalf), position(i, value + kHalf)};
}

bool Space::contains(const Point& point) const {
  if (point.size() != size()) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& p = parameters_[i];
    if (exists(i, point) != point[i].has_value()) return false;
    if (!point[i]) continue;
    const double value = *point[i];
    const bool whole = value == std::floor(value);
    if (p.kind == Kind::choice && !(whole && value >= 0 && value < static_cast<double>(p.choices.size()))) return false;
    if (p.kind != Kind::choice && !(value >= p.low && value <= p.high)) return false;
    if (p.kind == Kind::integer && !whole) return false;
  }
  return true;
}

std::optional<double> Space::count() const {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  // By the last parameter first: how many combinations follow from each choice of those that others depend on.
  const auto from = [&](const auto& self, std::size_t i, Point& point) -> double {
    if (i == size()) return 1;
    if (!exists(i, point)) return self(self, i + 1, point);
    const auto& p = parameters_[i];
    const bool decides =
        std::ranges::any_of(parameters_, [&](const Parameter& other) { return other.depends_on == i; });
    if (!decides) {
      const double own = p.kind == Kind::choice ? static_cast<double>(p.choices.size()) : p.high - p.low + 1;
      return own * self(self, i + 1, point);
    }
    double sum = 0;
    for (std::size_t choice = 0; choice < p.choices.size(); ++choice) {
      point[i] = static_cast<double>(choice);
      sum += self(self, i + 1, point);
    }
    point[i].reset();
    return sum;
  };
  if (std::ranges::any_of(parameters_, [](const Parameter& p) { return p.kind == Kind::real; })) return std::nullopt;
  Point point(size());
  const double all = from(from, 0, point);
  return all <= kMost ? std::optional(all) : std::nullopt;
}

Point Space::random(core::Random& random) const {
  return point([&](std::size_t) { return random.uniform(); });
}

std::string Space::text(std::size_t i, double value) const {
  const auto& p = parameters_[i];
  switch (p.kind) {
    case Kind::choice: return p.choices[static_cast<std::size_t>(value)];
    case Kind::integer: return core::to_toml(core::Value{static_cast<std::int64_t>(value)});
    case Kind::real: break;
  }
  return core::to_toml(core::Value{value});
}

std::optional<double> Space::value_of(std::size_t i, const std::string& text) const {
  const auto& p = parameters_[i];
  if (p.kind == Kind::choice) {
    const auto found = std::ranges::find(p.choices, text);
    return found == p.choices.end() ? std::nullopt : std::optional(static_cast<double>(found - p.choices.begin()));
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= p.low && value <= p.high))
    return std::nullopt;
  if (p.kind == Kind::integer && value != std::floor(value)) return std::nullopt;
  return value;
}

Point Space::point_of(const std::vector<std::pair<std::string, std::string>>& settings) const {
  Point made(size());
  for (std::size_t i = 0; i < size(); ++i) {
    if (!exists(i, made)) continue;
    const auto found = std::ranges::find(settings, parameters_[i].key, &std::pair<std::string, std::string>::first);
    if (found != settings.end()) made[i] = value_of(i, found->second);
  }
  return made;
}

}  // namespace troupe::sweep
