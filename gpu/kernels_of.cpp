#include "gpu/kernels_of.hpp"

#include <algorithm>
#include <cfloat>
#include <cstring>

#include "core/kernels_check.hpp"

namespace troupe::gpu {
namespace {

template <class T>
T unwrap(core::Result<T> result) {
  if (!result) throw DeviceFailed(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::int64_t count_of(core::ConstSpan x) { return static_cast<std::int64_t>(x.size()); }

class DeviceKernels final : public core::Kernels {
 public:
  DeviceKernels(Device& device, ThreadStreams& streams) : device_(device), streams_(streams) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }

  void fill(core::Span y, float value) const override { run(Fill{y.data(), value, count_of(y)}); }
  void copy(core::Span y, core::ConstSpan x) const override {
    core::check_equal_sizes(y, x);
    const auto stream = unwrap(streams_.mine());
    unwrap(stream->copy(y.data(), x.data(), y.size_bytes()));
    unwrap(stream->synchronize());
  }
  void scale(core::Span y, float a) const override { run(Scale{y.data(), a, count_of(y)}); }
  void axpy(core::Span y, float a, core::ConstSpan x) const override {
    core::check_equal_sizes(y, x);
    run(Axpy{y.data(), x.data(), a, count_of(y)});
  }
  void scale_add(core::Span y, float a, float b, core::ConstSpan x) const override {
    core::check_equal_sizes(y, x);
    run(ScaleAdd{y.data(), x.data(), a, b, count_of(y)});
  }
  void difference(core::Span y, core::ConstSpan a, core::ConstSpan b) const override {
    core::check_equal_sizes(y, a, b);
    run(Difference{y.data(), a.data(), b.data(), count_of(y)});
  }
  void elastic_pair(core::Span x, core::Span center, float alpha_worker, float alpha_center) const override {
    core::check_equal_sizes(x, center);
    run(ElasticPair{x.data(), center.data(), alpha_worker, alpha_center, count_of(x)});
  }
  void elastic_delta(core::Span x, core::Span center, float alpha_worker, float alpha_center) const override {
    core::check_equal_sizes(x, center);
    run(ElasticDelta{x.data(), center.data(), alpha_worker, alpha_center, count_of(x)});
  }
  void reduce_all(std::span<const core::Span> all, float scale) const override;
  void broadcast_all(std::span<const core::Span> all, std::size_t root) const override {
    core::check_equal_sizes(all);
    core::check_root(all, root);
    const auto stream = unwrap(streams_.mine());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i != root) unwrap(stream->copy(all[i].data(), all[root].data(), all[i].size_bytes()));
    unwrap(stream->synchronize());
  }
  void clamp(core::Span y, float limit) const override { run(Clamp{y.data(), limit, count_of(y)}); }
  void narrow(core::HalfSpan y, core::ConstSpan x, core::HalfKind kind) const override {
    core::check_equal_sizes(x, y);
    run(Narrow{y.data(), x.data(), kind, count_of(x)});
  }
  void widen(core::Span y, core::ConstHalfSpan x, core::HalfKind kind) const override {
    core::check_equal_sizes(y, x);
    run(Widen{y.data(), x.data(), kind, false, count_of(y)});
  }
  void add_wide(core::Span y, core::ConstHalfSpan x, core::HalfKind kind) const override {
    core::check_equal_sizes(y, x);
    run(Widen{y.data(), x.data(), kind, true, count_of(y)});
  }
  void optimize(core::Span x, core::ConstSpan g, core::OptimizerState state,
                const core::OptimizerStep& step) const override {
    update(x.data(), const_cast<float*>(g.data()), x, g, state, step, false);  // the kernel only reads g then
  }
  void optimize_delta(core::ConstSpan x, core::Span g, core::OptimizerState state,
                      const core::OptimizerStep& step) const override {
    update(const_cast<float*>(x.data()), g.data(), x, g, state, step, true);  // the kernel only reads x then
  }
  [[nodiscard]] double squared_norm(core::ConstSpan x) const override {
    const std::size_t chunks = squared_norm_scratch(count_of(x));
    double result = 0;
    run_with((chunks + 1) * sizeof(double), &result, sizeof(result), [&](std::byte* scratch) -> Kernel {
      auto* doubles = reinterpret_cast<double*>(scratch);
      return SquaredNorm{x.data(), doubles + 1, doubles, count_of(x)};
    });
    return result;
  }
  [[nodiscard]] bool all_finite(core::ConstSpan x) const override { return all_within(x, FLT_MAX); }
  [[nodiscard]] bool all_within(core::ConstSpan x, float limit) const override {
    std::int32_t result = 0;
    run_with(sizeof(result), &result, sizeof(result), [&](std::byte* scratch) -> Kernel {
      return AllWithin{x.data(), limit, reinterpret_cast<std::int32_t*>(scratch), count_of(x)};
    });
    return result != 0;
  }

 private:
  void run(const Kernel& kernel) const {
    const auto stream = unwrap(streams_.mine());
    unwrap(stream->launch(kernel));
    unwrap(stream->synchronize());
  }
  /// Runs a kernel that writes a result of `bytes` bytes to the beginning of scratch memory, and fetches it.
  template <class Make>
  void run_with(std::size_t scratch_bytes, void* result, std::size_t bytes, const Make& make) const {
    const auto stream = unwrap(streams_.mine());
    const auto floats = [](std::size_t size) { return core::align_floats((size + sizeof(float) - 1) / sizeof(float)); };
    core::Buffer scratch = unwrap(core::Buffer::allocate(device_.memory(), floats(scratch_bytes)));
    core::Buffer pinned = unwrap(core::Buffer::allocate(device_.pinned(), floats(bytes)));
    unwrap(stream->launch(make(reinterpret_cast<std::byte*>(scratch.data()))));
    unwrap(stream->copy_to_host(pinned.data(), scratch.data(), bytes));
    unwrap(stream->synchronize());
    std::memcpy(result, pinned.data(), bytes);
  }
  void update(float* x, float* g, core::ConstSpan parameters, core::ConstSpan gradients,
              const core::OptimizerState& state, const core::OptimizerStep& step, bool delta) const;

  Device& device_;
  ThreadStreams& streams_;
};

void DeviceKernels::reduce_all(std::span<const core::Span> all, float scale) const {
  core::check_equal_sizes(all);
  constexpr std::size_t kMost = std::tuple_size_v<decltype(ReduceAll::all)>;
  const auto stream = unwrap(streams_.mine());
  if (all.size() <= kMost) {
    ReduceAll kernel{.vectors = static_cast<int>(all.size()), .scale = scale, .count = count_of(all[0])};
    for (std::size_t i = 0; i < all.size(); ++i) kernel.all[i] = all[i].data();
    unwrap(stream->launch(kernel));
  } else {  // the sum in list order, then the scale, as one call would round; then copies
    const core::Span sum = all[0];
    for (std::size_t i = 1; i < all.size(); ++i)
      unwrap(stream->launch(Axpy{sum.data(), all[i].data(), 1, count_of(sum)}));
    unwrap(stream->launch(Scale{sum.data(), scale, count_of(sum)}));
    for (std::size_t i = 1; i < all.size(); ++i) unwrap(stream->copy(all[i].data(), sum.data(), sum.size_bytes()));
  }
  unwrap(stream->synchronize());
}

void DeviceKernels::update(float* x, float* g, core::ConstSpan parameters, core::ConstSpan gradients,
                           const core::OptimizerState& state, const core::OptimizerStep& step, bool delta) const {
  core::check_optimizer(parameters, gradients, state, step);
  const auto stream = unwrap(streams_.mine());
  const std::size_t floats = core::align_floats(sizeof(core::StepNumbers) / sizeof(float) + 1);
  core::Buffer numbers = unwrap(core::Buffer::allocate(device_.memory(), floats));
  core::Buffer pinned = unwrap(core::Buffer::allocate(device_.pinned(), floats));
  const core::StepNumbers values = core::step_numbers(step);
  std::memcpy(pinned.data(), &values, sizeof(values));
  unwrap(stream->copy_to_device(numbers.data(), pinned.data(), sizeof(values)));
  unwrap(stream->launch(Optimize{.kind = step.kind,
                                 .x = x,
                                 .g = g,
                                 .first = state.first.data(),
                                 .second = state.second.data(),
                                 .numbers = reinterpret_cast<const core::StepNumbers*>(numbers.data()),
                                 .delta = delta,
                                 .count = count_of(parameters)}));
  unwrap(stream->synchronize());
}

}  // namespace

std::unique_ptr<core::Kernels> kernels_of(Device& device, ThreadStreams& streams) {
  return std::make_unique<DeviceKernels>(device, streams);
}

}  // namespace troupe::gpu
