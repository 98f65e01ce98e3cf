/// The settings that a sweep searches: parameters with ranges or choices, some of which exist only with one choice of another parameter.
/// Values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/random.hpp"

namespace troupe::sweep {

enum class Kind : std::uint8_t { real, integer, choice };

struct Parameter {
  std::string key;  // "train.lr"; two parameters may share it if no point has both
  Kind kind = Kind::real;
  double low = 0, high = 1;                 // real, integer: both ends included
  bool log = false;                         // real, integer: low > 0, and the search is even over logarithms
  std::vector<std::string> choices{};       // choice: TOML, at least one
  std::optional<std::size_t> depends_on{};  // an earlier parameter of kind choice
  std::vector<std::size_t> when{};          // the choices of it with which this parameter exists
  std::string where{};                      // file:line, for messages
};

/// A value by parameter: the number itself, or the index of the choice; none where the parameter does not exist.
using Point = std::vector<std::optional<double>>;

/// A part of the unit interval, low < high.
struct Cell {
  double low = 0, high = 1;
};

/// Every value has a position in the unit interval, along which it is searched. Whole numbers have cells of it: rounding is a part of the
/// model, not an error of it.
class Space {
 public:
  Space() = default;
  /// REQUIRES low < high, or low == high for integers; depends_on < the parameter's own index.
  explicit Space(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {}

  [[nodiscard]] std::size_t size() const noexcept { return parameters_.size(); }
  [[nodiscard]] const Parameter& operator[](std::size_t i) const { return parameters_[i]; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }

  /// Whether parameter i exists, by the values of the parameters before it.
  [[nodiscard]] bool exists(std::size_t i, const Point& point) const;
  /// The value at u in [0, 1]. Real numbers have four significant digits of their range, so that people can read and repeat them.
  [[nodiscard]] double at(std::size_t i, double u) const;
  /// The position of a real or whole number in [0, 1]: the inverse of at(), up to rounding.
  [[nodiscard]] double position(std::size_t i, double value) const;
  /// The values of [0, 1] that at() makes this whole number, or choice, of.
  [[nodiscard]] Cell cell(std::size_t i, double value) const;
  /// Whether the point has a value within range for each parameter that exists, and for no other.
  [[nodiscard]] bool contains(const Point& point) const;
  /// The number of different points; none: real numbers are among them, or more than 2^53.
  [[nodiscard]] std::optional<double> count() const;

  /// Each parameter that exists, at u(i).
  template <class PositionOf>
  [[nodiscard]] Point point(PositionOf u) const {
    Point made(size());
    for (std::size_t i = 0; i < size(); ++i)
      if (exists(i, made)) made[i] = at(i, u(i));
    return made;
  }
  /// Uniform over [0, 1] in each parameter.
  [[nodiscard]] Point random(core::Random& random) const;

  /// The value as TOML: of a whole number without a decimal point.
  [[nodiscard]] std::string text(std::size_t i, double value) const;
  /// The value that text() wrote; none: it is no value of the parameter.
  [[nodiscard]] std::optional<double> value_of(std::size_t i, const std::string& text) const;
  /// The point with these keys and values, as text() has them; without what is no value of its parameter.
  [[nodiscard]] Point point_of(const std::vector<std::pair<std::string, std::string>>& settings) const;

 private:
  [[nodiscard]] double low_edge(std::size_t i) const;  // of the searched interval, in its scale
  [[nodiscard]] double high_edge(std::size_t i) const;
  std::vector<Parameter> parameters_;
};

}  // namespace troupe::sweep
