#include "core/kernels_host.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "core/kernels_check.hpp"
#include "core/kernels_loops.hpp"

namespace troupe::core {

void Kernels::upload(Span y, ConstSpan host) const { copy(y, host); }
void Kernels::download(Span host, ConstSpan x) const { copy(host, x); }

namespace {

class HostKernels final : public Kernels {
 public:
  explicit HostKernels(const HostLoops& loops) noexcept : loops_(loops) {}
  [[nodiscard]] MemorySpace space() const noexcept override { return MemorySpace::host; }

  void fill(Span y, float value) const override { loops_.fill(y.data(), value, y.size()); }
  void copy(Span y, ConstSpan x) const override {
    check_equal_sizes(y, x);
    if (!y.empty()) std::memcpy(y.data(), x.data(), y.size_bytes());
  }
  void scale(Span y, float a) const override { loops_.scale(y.data(), a, y.size()); }
  void axpy(Span y, float a, ConstSpan x) const override {
    check_equal_sizes(y, x);
    loops_.axpy(y.data(), a, x.data(), y.size());
  }
  void scale_add(Span y, float a, float b, ConstSpan x) const override {
    check_equal_sizes(y, x);
    loops_.scale_add(y.data(), a, b, x.data(), y.size());
  }
  void difference(Span y, ConstSpan a, ConstSpan b) const override {
    check_equal_sizes(y, a, b);
    loops_.difference(y.data(), a.data(), b.data(), y.size());
  }
  void elastic_pair(Span x, Span center, float alpha_worker, float alpha_center) const override {
    check_equal_sizes(x, center);
    loops_.elastic_pair(x.data(), center.data(), alpha_worker, alpha_center, x.size());
  }
  void elastic_delta(Span x, Span center, float alpha_worker, float alpha_center) const override {
    check_equal_sizes(x, center);
    loops_.elastic_delta(x.data(), center.data(), alpha_worker, alpha_center, x.size());
  }
  void reduce_all(std::span<const Span> all, float scale) const override {
    check_equal_sizes(all);
    loops_.reduce_all(all.data(), all.size(), scale, all[0].size());
  }
  void broadcast_all(std::span<const Span> all, std::size_t root) const override {
    check_equal_sizes(all);
    check_root(all, root);
    loops_.broadcast_all(all.data(), all.size(), root, all[0].size());
  }
  void clamp(Span y, float limit) const override { loops_.clamp(y.data(), limit, y.size()); }
  void narrow(HalfSpan y, ConstSpan x, HalfKind kind) const override {
    check_equal_sizes(x, y);
    loops_.narrow[static_cast<std::size_t>(kind)](y.data(), x.data(), y.size());
  }
  void widen(Span y, ConstHalfSpan x, HalfKind kind) const override {
    check_equal_sizes(y, x);
    loops_.widen[static_cast<std::size_t>(kind)](y.data(), x.data(), y.size());
  }
  void add_wide(Span y, ConstHalfSpan x, HalfKind kind) const override {
    check_equal_sizes(y, x);
    loops_.add_wide[static_cast<std::size_t>(kind)](y.data(), x.data(), y.size());
  }
  void optimize(Span x, ConstSpan g, OptimizerState state, const OptimizerStep& step) const override {
    check_optimizer(x, g, state, step);
    loops_.optimize[static_cast<std::size_t>(step.kind)](x.data(), g.data(), state.first.data(), state.second.data(),
                                                         x.size(), step_numbers(step));
  }
  void optimize_delta(ConstSpan x, Span g, OptimizerState state, const OptimizerStep& step) const override {
    check_optimizer(x, g, state, step);
    loops_.optimize_delta[static_cast<std::size_t>(step.kind)](x.data(), g.data(), state.first.data(),
                                                               state.second.data(), x.size(), step_numbers(step));
  }
  [[nodiscard]] double squared_norm(ConstSpan x) const override { return loops_.squared_norm(x.data(), x.size()); }
  [[nodiscard]] bool all_finite(ConstSpan x) const override { return loops_.all_finite(x.data(), x.size()); }
  [[nodiscard]] bool all_within(ConstSpan x, float limit) const override {
    return loops_.all_within(x.data(), limit, x.size());
  }

 private:
  const HostLoops& loops_;
};

void expect_equal(std::size_t a, std::size_t b) {
  if (a != b) throw std::invalid_argument(fmt::format("kernel called with vectors of {} and {} floats", a, b));
}

}  // namespace

void check_equal_sizes(ConstSpan a, ConstSpan b) { expect_equal(a.size(), b.size()); }

void check_equal_sizes(ConstSpan a, ConstSpan b, ConstSpan c) {
  expect_equal(a.size(), b.size());
  expect_equal(a.size(), c.size());
}

void check_equal_sizes(ConstSpan a, ConstHalfSpan b) { expect_equal(a.size(), b.size()); }

void check_equal_sizes(std::span<const Span> all) {
  if (all.empty()) throw std::invalid_argument("kernel called with no vector");
  for (const Span& vector : all) expect_equal(all[0].size(), vector.size());
}

void check_root(std::span<const Span> all, std::size_t root) {
  if (root >= all.size()) throw std::invalid_argument(fmt::format("broadcast from vector {} of {}", root, all.size()));
}

void check_optimizer(ConstSpan x, ConstSpan g, const OptimizerState& state, const OptimizerStep& step) {
  expect_equal(x.size(), g.size());
  if (state_slots(step.kind) > 0) expect_equal(x.size(), state.first.size());
  if (state_slots(step.kind) > 1) expect_equal(x.size(), state.second.size());
}

StepNumbers step_numbers(const OptimizerStep& step) noexcept {
  const auto t = static_cast<double>(step.t);
  const auto correction = [t](float rate) { return static_cast<float>(1.0 / (1.0 - std::pow(double{rate}, t))); };
  const bool corrects = optimizer_info(step.kind).bias_correction;
  return {step.lr,
          step.momentum,
          step.weight_decay,
          step.decay,
          step.epsilon,
          corrects ? correction(step.momentum) : 1,
          corrects ? correction(step.decay) : 1};
}

void clip(const Kernels& kernels, Span g, float value, float norm) {
  if (value > 0) kernels.clamp(g, value);
  if (!(norm > 0)) return;
  const double length = std::sqrt(kernels.squared_norm(g));
  if (std::isfinite(length) && length > double{norm}) kernels.scale(g, static_cast<float>(double{norm} / length));
}

std::vector<HostVariant> host_variants() {
  static const HostKernels avx512{kAvx512Loops};
  static const HostKernels avx2{kAvx2Loops};
  std::vector<HostVariant> variants;
  if (__builtin_cpu_supports("avx512f")) variants.push_back({"avx512", &avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) variants.push_back({"avx2", &avx2});
  variants.push_back({"reference", &reference_kernels()});
  return variants;
}

const Kernels& host_kernels() noexcept {
  static const Kernels& fastest = *host_variants().front().kernels;
  return fastest;
}

}  // namespace troupe::core
