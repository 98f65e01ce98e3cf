#include "nn/metrics.hpp"

#include <cmath>

namespace troupe::nn {
namespace {

constexpr std::int64_t kTop = 5;

double share(double part, std::int64_t whole) noexcept { return whole == 0 ? 0 : part / static_cast<double>(whole); }

}  // namespace

void RunningMetrics::add(const StepResult& result) noexcept {
  samples_ += result.samples;
  batches_ += 1;
  top1_ += result.top1;
  top5_ += result.top5;
  loss_sum_ += result.loss * static_cast<double>(result.samples);
}

void RunningMetrics::add(const RunningMetrics& other) noexcept {
  samples_ += other.samples_;
  batches_ += other.batches_;
  top1_ += other.top1_;
  top5_ += other.top5_;
  loss_sum_ += other.loss_sum_;
}

double RunningMetrics::loss() const noexcept { return share(loss_sum_, samples_); }

double RunningMetrics::top1() const noexcept { return share(static_cast<double>(top1_), samples_); }

std::optional<double> RunningMetrics::top5() const noexcept {
  if (classes_ < kTop) return std::nullopt;
  return share(static_cast<double>(top5_), samples_);
}

bool RunningMetrics::finite() const noexcept { return std::isfinite(loss_sum_); }

}  // namespace troupe::nn
