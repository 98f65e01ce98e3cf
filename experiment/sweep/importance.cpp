#include "experiment/sweep/importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::sweep {
namespace {

constexpr std::size_t kFewest = 8;
constexpr double kPenalty = 1;

using Row = std::vector<double>;

/// The features of one parameter of a point; zeros where it does not exist.
void add_features(const Space& space, std::size_t i, const Point& point, Row& row) {
  const auto& p = space[i];
  if (p.kind == Kind::choice) {
    const auto count = static_cast<double>(p.choices.size());
    for (double choice = 0; choice < count; ++choice)
      row.push_back(point[i] ? std::sqrt(count) * ((*point[i] == choice ? 1 : 0) - 1 / count) : 0);
    return;
  }
  const double x = point[i] ? 2 * space.position(i, *point[i]) - 1 : 0;
  row.push_back(point[i] ? std::sqrt(3.0) * x : 0);
  row.push_back(point[i] ? std::sqrt(5.0) * (1.5 * x * x - 0.5) : 0);
}

std::size_t features(const Parameter& p) { return p.kind == Kind::choice ? p.choices.size() : 2; }

/// Solves a x = b for a symmetric positive definite matrix, by Cholesky's factors.
Row solve(std::vector<Row> a, Row b) {
  const auto n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(a[j][j]);
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/// Coefficients of the features; the first is the constant's, which is not penalised.
Row fit(const Space& space, std::span<const Point> ranked) {
  std::size_t size = 1;
  for (const auto& p : space.parameters()) size += features(p);
  std::vector<Row> products(size, Row(size));
  Row right(size);
  for (std::size_t k = 0; k < ranked.size(); ++k) {
    Row row{1};
    for (std::size_t i = 0; i < space.size(); ++i) add_features(space, i, ranked[k], row);
    const double rank = static_cast<double>(k) / static_cast<double>(ranked.size() - 1);
    for (std::size_t i = 0; i < size; ++i) {
      right[i] += row[i] * rank;
      for (std::size_t j = 0; j < size; ++j) products[i][j] += row[i] * row[j];
    }
  }
  for (std::size_t i = 1; i < size; ++i) products[i][i] += kPenalty;
  return solve(std::move(products), std::move(right));
}

double share_of_space(const Space& space, const Parameter& p) {
  if (!p.depends_on) return 1;
  return static_cast<double>(p.when.size()) / static_cast<double>(space[*p.depends_on].choices.size());
}

}  // namespace

std::vector<double> importance(const Space& space, std::span<const Point> ranked) {
  if (ranked.size() < kFewest) return {};
  const auto coefficients = fit(space, ranked);
  std::vector<double> effects;
  auto next = coefficients.begin() + 1;
  for (const auto& p : space.parameters()) {
    const auto end = next + static_cast<std::ptrdiff_t>(features(p));
    // Of K choices the part of choice c is √K · b_c, because the fit's b sum to 0: its variance is the sum of the squares, too.
    const double own = std::inner_product(next, end, next, 0.0);
    effects.push_back(own * share_of_space(space, p));
    next = end;
  }
  const double sum = std::accumulate(effects.begin(), effects.end(), 0.0);
  if (sum > 0)
    for (auto& effect : effects) effect /= sum;
  return effects;
}

}  // namespace troupe::sweep
