#include "cpu/layers/loss.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cpu/kernels/elementwise.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kTop = 5;
constexpr std::int64_t kRowsAtOnce = 64;  // the maxima and sums of this many rows fit on the stack

void count_hits(const float* z, std::int32_t label, std::int64_t classes, nn::StepResult& result) {
  const float mine = z[label];
  std::int64_t ahead = 0;  // classes that rank before the label's; "not greater" ranks NaN first
  for (std::int64_t c = 0; c < label; ++c) ahead += mine > z[c] ? 0 : 1;
  for (std::int64_t c = label + 1; c < classes; ++c) ahead += mine >= z[c] ? 0 : 1;
  if (!(mine == mine)) return;
  if (ahead == 0) ++result.top1;
  if (ahead < kTop && classes >= kTop) ++result.top5;
}

/// −log softmax(z)[label] = log Σ exp(z − max) + max − z[label]; gradient (softmax(z) − onehot) / samples. Smoothed by s, z[label] becomes
/// (1 − s) z[label] + s · mean of z, and onehot the smoothed target.
double softmax_cross_entropy(const float* z, std::span<const std::int32_t> labels, std::int64_t samples,
                             std::int64_t classes, float* gradient, double smoothing) {
  const auto share = static_cast<float>(smoothing / static_cast<double>(classes * samples));
  double sum = 0;
  std::array<float, kRowsAtOnce> maxima{};
  std::array<float, kRowsAtOnce> sums{};
  for (std::int64_t first = 0; first < samples; first += kRowsAtOnce) {
    const std::int64_t rows = std::min(kRowsAtOnce, samples - first);
    elementwise().exp_rows(z + first * classes, gradient + first * classes, maxima.data(), sums.data(), rows, classes);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t row = first + r;
      const auto label = labels[static_cast<std::size_t>(row)];
      const auto at = static_cast<std::size_t>(r);
      double target = z[row * classes + label];
      if (smoothing > 0) {
        double mean = 0;
        for (std::int64_t c = 0; c < classes; ++c) mean += z[row * classes + c];
        target = (1 - smoothing) * target + smoothing * mean / static_cast<double>(classes);
      }
      sum += std::log(static_cast<double>(sums[at])) + (static_cast<double>(maxima[at]) - target);
      float* g = gradient + row * classes;
      const float scale = 1.0f / (sums[at] * static_cast<float>(samples));
      for (std::int64_t c = 0; c < classes; ++c) g[c] = g[c] * scale - share;
      g[label] -= static_cast<float>(1 - smoothing) / static_cast<float>(samples);
    }
  }
  return sum;
}

/// ½ Σ (z − onehot)²; gradient (z − onehot) / samples.
double squared_error(const float* z, std::span<const std::int32_t> labels, std::int64_t samples, std::int64_t classes,
                     float* gradient) {
  const float scale = 1.0f / static_cast<float>(samples);
  double sum = 0;
  for (std::int64_t row = 0; row < samples; ++row, z += classes, gradient += classes) {
    const auto label = labels[static_cast<std::size_t>(row)];
    for (std::int64_t c = 0; c < classes; ++c) {
      const float difference = z[c] - (c == label ? 1.0f : 0.0f);
      gradient[c] = difference * scale;
      sum += 0.5 * static_cast<double>(difference) * difference;
    }
  }
  return sum;
}

}  // namespace

core::Result<nn::StepResult> compute_loss(nn::Loss loss, const float* z, std::span<const std::int32_t> labels,
                                          std::int64_t samples, std::int64_t classes, float* gradient,
                                          double smoothing) {
  for (std::int64_t row = 0; row < samples; ++row) {
    const auto label = labels[static_cast<std::size_t>(row)];
    if (label < 0 || label >= classes)
      return core::fail(core::Errc::data,
                        fmt::format("sample {} of the batch has label {}, the model has {} classes (0 to {})", row,
                                    label, classes, classes - 1));
  }
  nn::StepResult result;
  result.samples = samples;
  if (samples == 0) return result;
  for (std::int64_t row = 0; row < samples; ++row)
    count_hits(z + row * classes, labels[static_cast<std::size_t>(row)], classes, result);
  const double sum = loss == nn::Loss::softmax_cross_entropy
                         ? softmax_cross_entropy(z, labels, samples, classes, gradient, smoothing)
                         : squared_error(z, labels, samples, classes, gradient);
  result.loss = sum / static_cast<double>(samples);
  return result;
}

}  // namespace troupe::cpu
