#include "gpu/kernels_of.hpp"

#include <algorithm>
#include <cfloat>
#include <cstring>

#include "core/kernels_check.hpp"
#include "gpu/scratch_pool.hpp"

namespace troupe::gpu {
namespace {

template <class T>
T unwrap(core::Result<T> result) {
  if (!result) throw core::KernelsFailed(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::int64_t count_of(core::ConstSpan x) { return static_cast<std::int64_t>(x.size()); }

class DeviceKernels final : public core::Kernels {
 public:
  DeviceKernels(Device& device, ThreadStreams& streams) : streams_(streams), scratch_(device) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }

  void fill(core::Span y, float value) const override { run(Fill{y.data(), value, count_of(y)}); }
  void copy(core::Span y, core::ConstSpan x) const override {
    core::check_equal_sizes(y, x);
    if (!y.empty()) on_stream([&](Stream& stream) { return stream.copy(y.data(), x.data(), y.size_bytes()); });
  }
  void upload(core::Span y, core::ConstSpan host) const override {
    core::check_equal_sizes(y, host);
    if (y.empty()) return;
    const auto scratch = unwrap(scratch_.take_staging());
    on_stream([&](Stream& stream) { return scratch->staging->upload(stream, y.data(), host.data(), y.size_bytes()); });
  }
  void download(core::Span host, core::ConstSpan x) const override {
    core::check_equal_sizes(host, x);
    if (x.empty()) return;
    const auto scratch = unwrap(scratch_.take_staging());
    on_stream(
        [&](Stream& stream) { return scratch->staging->download(stream, host.data(), x.data(), x.size_bytes()); });
  }
  void finish() const override {
    on_stream([](Stream&) { return core::Result<void>(); });
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
    on_stream([&](Stream& stream) -> core::Result<void> {
      for (std::size_t i = 0; i < all.size(); ++i)
        if (i != root)
          if (auto ran = stream.copy(all[i].data(), all[root].data(), all[i].size_bytes()); !ran) return ran;
      return {};
    });
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
  /// Enqueues work on the calling thread's stream and waits for it, also after an error: what it names may be in use until then.
  template <class Enqueue>
  void on_stream(const Enqueue& enqueue) const {
    const auto stream = unwrap(streams_.mine());
    const core::Result<void> enqueued = enqueue(*stream);
    const core::Result<void> waited = stream->synchronize();
    unwrap(enqueued);
    unwrap(waited);
  }
  void run(const Kernel& kernel) const {
    on_stream([&](Stream& stream) { return stream.launch(kernel); });
  }
  /// Runs a kernel that writes a result of `bytes` bytes to the beginning of scratch memory, and fetches it.
  template <class Make>
  void run_with(std::size_t scratch_bytes, void* result, std::size_t bytes, const Make& make) const {
    const auto scratch = unwrap(scratch_.take(scratch_bytes, bytes));
    on_stream([&](Stream& stream) -> core::Result<void> {
      if (auto ran = stream.launch(make(reinterpret_cast<std::byte*>(scratch->device.data()))); !ran) return ran;
      return stream.copy_to_host(scratch->pinned.data(), scratch->device.data(), bytes);
    });
    std::memcpy(result, scratch->pinned.data(), bytes);
  }
  void update(float* x, float* g, core::ConstSpan parameters, core::ConstSpan gradients,
              const core::OptimizerState& state, const core::OptimizerStep& step, bool delta) const;

  ThreadStreams& streams_;
  mutable ScratchPool scratch_;
};

void DeviceKernels::reduce_all(std::span<const core::Span> all, float scale) const {
  core::check_equal_sizes(all);
  constexpr std::size_t kMost = std::tuple_size_v<decltype(ReduceAll::all)>;
  if (all.size() <= kMost) {
    ReduceAll kernel{.vectors = static_cast<int>(all.size()), .scale = scale, .count = count_of(all[0])};
    for (std::size_t i = 0; i < all.size(); ++i) kernel.all[i] = all[i].data();
    return run(kernel);
  }
  // The sum in list order, then the scale, as one call would round; then copies.
  on_stream([&](Stream& stream) -> core::Result<void> {
    const core::Span sum = all[0];
    for (std::size_t i = 1; i < all.size(); ++i)
      if (auto ran = stream.launch(Axpy{sum.data(), all[i].data(), 1, count_of(sum)}); !ran) return ran;
    if (auto ran = stream.launch(Scale{sum.data(), scale, count_of(sum)}); !ran) return ran;
    for (std::size_t i = 1; i < all.size(); ++i)
      if (auto ran = stream.copy(all[i].data(), sum.data(), sum.size_bytes()); !ran) return ran;
    return {};
  });
}

void DeviceKernels::update(float* x, float* g, core::ConstSpan parameters, core::ConstSpan gradients,
                           const core::OptimizerState& state, const core::OptimizerStep& step, bool delta) const {
  core::check_optimizer(parameters, gradients, state, step);
  run(Optimize{.kind = step.kind,
               .x = x,
               .g = g,
               .first = state.first.data(),
               .second = state.second.data(),
               .numbers = core::step_numbers(step),
               .delta = delta,
               .count = count_of(parameters)});
}

}  // namespace

std::unique_ptr<core::Kernels> kernels_of(Device& device, ThreadStreams& streams) {
  return std::make_unique<DeviceKernels>(device, streams);
}

}  // namespace troupe::gpu
