#include "gpu/kernels/kernel_ranges.hpp"

#include "gpu/kernels/row_chunks.hpp"

namespace troupe::gpu {
namespace {

/// Collects the operands of a call, whose members have the names of gpu/kernels/kernel.hpp.
class RangesOf {
 public:
  [[nodiscard]] std::vector<KernelRange> take() { return std::move(ranges_); }

  void operator()(const Cast& k) {
    need("from", k.from, k.count, k.from_type);
    need("to", k.to, k.count, k.to_type);
  }
  void operator()(const ImagesToNhwc& k) {
    need("from", k.from, k.to_shape.pixels() * k.channels);
    need("to", k.to, k.to_shape.size(), k.type);
  }
  void operator()(const ActivationForward& k) {
    need("x", k.x, k.count, k.type);
    need("y", k.y, k.count, k.type);
  }
  void operator()(const ActivationBackward& k) {
    need("y", k.y, k.count, k.type);
    need("dy", k.dy, k.count, k.type);
    need("dx", k.dx, k.count, k.type);
  }
  void operator()(const ColumnSums& k) {
    need("x", k.x, k.rows * k.columns, k.type);
    need("sums", k.sums, k.columns);
    scratch(k.scratch, k.rows, k.columns, 1);
  }
  void operator()(const PoolForward& k) {
    pool(k);
    if (k.winners != nullptr) need("winners", k.winners, k.output.size());
  }
  void operator()(const PoolBackward& k) {
    pool(k.forward);
    if (k.forward.kind == nn::PoolKind::max) need("winners", k.forward.winners, k.forward.output.size());
  }
  void operator()(const AdaptivePoolForward& k) { pool(k); }
  void operator()(const AdaptivePoolBackward& k) { pool(k.forward); }
  void operator()(const LrnForward& k) {
    need("x", k.x, k.shape.size(), k.type);
    need("y", k.y, k.shape.size(), k.type);
  }
  void operator()(const LrnBackward& k) {
    need("x", k.x, k.shape.size(), k.type);
    need("dy", k.dy, k.shape.size(), k.type);
    need("dx", k.dx, k.shape.size(), k.type);
  }
  void operator()(const BatchStatistics& k) {
    need("x", k.x, k.pixels * k.channels, k.type);
    need("mean", k.mean, k.channels);
    need("inverse_deviation", k.inverse_deviation, k.channels);
    if (k.running_mean != nullptr) {
      need("running_mean", k.running_mean, k.channels);
      need("running_variance", k.running_variance, k.channels);
    }
    if (k.sum != nullptr) {
      pair("sum", k.sum, "squares", k.squares, k.channels);
    } else {
      need("scratch", k.scratch, static_cast<std::int64_t>(batch_norm_scratch(k.pixels, k.channels)));
    }
    if (k.variance != nullptr) need("variance", k.variance, k.channels);
  }
  void operator()(const MoveStatistics& k) {
    need("mean", k.mean, k.channels);
    need("variance", k.variance, k.channels);
    need("running_mean", k.running_mean, k.channels);
    need("running_variance", k.running_variance, k.channels);
    if (k.sums != nullptr) add("sums", k.sums, sizeof(LossSums));
  }
  void operator()(const BatchNormForward& k) {
    const std::int64_t count = k.pixels * k.channels;
    need("x", k.x, count, k.type);
    need("y", k.y, count, k.type);
    if (k.addend != nullptr) need("addend", k.addend, count, k.type);
    need("weight", k.weight, k.channels);
    need("bias", k.bias, k.channels);
    need("mean", k.mean, k.channels);
    need("inverse_deviation", k.inverse_deviation, k.channels);
  }
  void operator()(const BatchNormGradients& k) {
    norm_gradients(k);
    scratch(k.scratch, k.pixels, k.channels, 2);
  }
  void operator()(const BatchNormBackward& k) {
    const std::int64_t count = k.gradients.pixels * k.gradients.channels;
    norm_gradients(k.gradients);
    need("weight", k.weight, k.gradients.channels);
    if (k.dx != nullptr) need("dx", k.dx, count, k.gradients.type);
    if (k.addend_gradient != nullptr) need("addend_gradient", k.addend_gradient, count, k.gradients.type);
  }
  void operator()(const Dropout& k) {
    need("x", k.x, k.shape.size(), k.type);
    need("y", k.y, k.shape.size(), k.type);
    add("key", k.key, sizeof(DropoutKey));
  }
  void operator()(const AddUp& k) {
    for (int i = 0; i < k.inputs; ++i) need("x", k.x[static_cast<std::size_t>(i)], k.count, k.type);
    need("y", k.y, k.count, k.type);
  }
  void operator()(const CopyChannels& k) {
    if (k.pixels == 0 || k.channels == 0) return;
    need("from", k.from, (k.pixels - 1) * k.from_channels + k.from_first + k.channels, k.type);
    need("to", k.to, (k.pixels - 1) * k.to_channels + k.to_first + k.channels, k.type);
  }
  void operator()(const Transpose& k) {
    need("from", k.from, k.batch * k.rows * k.columns, k.type);
    need("to", k.to, k.batch * k.rows * k.columns, k.type);
  }
  void operator()(const LossKernel& k) {
    need("z", k.z, k.rows * k.classes);
    need("labels", k.labels, k.rows);
    add("samples", k.samples, sizeof(*k.samples));
    if (k.gradient != nullptr) need("gradient", k.gradient, k.rows * k.classes, k.gradient_type);
    if (k.loss_scale != nullptr) add("loss scale", k.loss_scale, sizeof(*k.loss_scale));
    add("sums", k.sums, sizeof(LossSums));
    add("row_sums", k.row_sums, static_cast<std::size_t>(k.rows) * sizeof(LossSums));
  }
  void operator()(const BytesToNhwc& k) {
    const std::int64_t image = k.from_shape.height * k.from_shape.width * k.from_shape.channels;
    add("from", k.from, static_cast<std::size_t>(k.to_shape.batch * image));
    need("to", k.to, k.to_shape.size(), k.type);
    add("cuts", k.cuts, static_cast<std::size_t>(k.to_shape.batch) * sizeof(Cut));
    need("scale", k.scale, k.from_shape.channels);
    need("bias", k.bias, image);
  }

  void operator()(const Fill& k) { need("y", k.y, k.count); }
  void operator()(const Scale& k) { need("y", k.y, k.count); }
  void operator()(const ScaleBy& k) {
    need("y", k.y, k.count);
    add("a", k.a, sizeof(*k.a));
  }
  void operator()(const Clamp& k) { need("y", k.y, k.count); }
  void operator()(const Axpy& k) { pair("y", k.y, "x", k.x, k.count); }
  void operator()(const ScaleAdd& k) { pair("y", k.y, "x", k.x, k.count); }
  void operator()(const Difference& k) {
    need("y", k.y, k.count);
    pair("a", k.a, "b", k.b, k.count);
  }
  void operator()(const ElasticPair& k) { pair("x", k.x, "center", k.center, k.count); }
  void operator()(const ElasticDelta& k) { pair("x", k.x, "center", k.center, k.count); }
  void operator()(const ReduceAll& k) {
    for (int v = 0; v < k.vectors; ++v) need("all", k.all[static_cast<std::size_t>(v)], k.count);
  }
  void operator()(const Narrow& k) {
    need("y", k.y, k.count, Type::fp16);
    need("x", k.x, k.count);
  }
  void operator()(const Widen& k) {
    need("y", k.y, k.count);
    need("x", k.x, k.count, Type::fp16);
  }
  void operator()(const Optimize& k) {
    need("x", k.x, k.count);
    need("g", k.g, k.count);
    const int states = core::optimizer_info(k.kind).state_slots;
    if (states > 0) need("first", k.first, k.count);
    if (states > 1) need("second", k.second, k.count);
  }
  void operator()(const SquaredNorm& k) {
    need("x", k.x, k.count);
    add("chunks", k.chunks, squared_norm_scratch(k.count) * sizeof(double));
    add("result", k.result, sizeof(double));
  }
  void operator()(const LimitNorm& k) {
    need("y", k.y, k.count);
    add("squared_norm", k.squared_norm, sizeof(double));
  }
  void operator()(const AllWithin& k) {
    need("x", k.x, k.count);
    add("result", k.result, sizeof(*k.result));
  }
  void operator()(const Xxh3& k) {
    add("data", k.data, static_cast<std::size_t>(k.bytes));
    add("scratch", k.scratch, xxh3_scratch(k.bytes) * sizeof(*k.scratch));
    add("result", k.result, sizeof(*k.result));
  }

 private:
  void add(const char* name, const void* memory, std::size_t bytes) {
    if (bytes > 0) ranges_.push_back({name, memory, bytes});
  }
  void need(const char* name, const void* memory, std::int64_t count, Type type = Type::fp32) {
    add(name, memory, static_cast<std::size_t>(count) * bytes_of(type));
  }
  void pair(const char* one, const float* first, const char* other, const float* second, std::int64_t count) {
    need(one, first, count);
    need(other, second, count);
  }
  template <class Pool>
  void pool(const Pool& k) {
    need("x", k.x, k.input.size(), k.type);
    need("y", k.y, k.output.size(), k.type);
  }
  void norm_gradients(const BatchNormGradients& k) {
    const std::int64_t count = k.pixels * k.channels;
    need("x", k.x, count, k.type);
    if (k.y != nullptr) need("y", k.y, count, k.type);
    if (k.relu && k.y == nullptr) {
      need("weight", k.weight, k.channels);
      need("bias", k.bias, k.channels);
    }
    need("dy", k.dy, count, k.type);
    need("mean", k.mean, k.channels);
    need("inverse_deviation", k.inverse_deviation, k.channels);
    need("weight_gradient", k.weight_gradient, k.channels);
    need("bias_gradient", k.bias_gradient, k.channels);
  }
  /// Of sums over rows: not used where one chunk has them all.
  void scratch(const float* memory, std::int64_t rows, std::int64_t columns, std::int64_t values) {
    const std::int64_t chunks = RowChunks::of(rows, columns).chunks;
    if (chunks > 1) need("scratch", memory, values * chunks * columns);
  }

  std::vector<KernelRange> ranges_;
};

}  // namespace

std::vector<KernelRange> ranges_of(const Kernel& kernel) {
  RangesOf ranges;
  std::visit(ranges, kernel);
  return ranges.take();
}

}  // namespace troupe::gpu
