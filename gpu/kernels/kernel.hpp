/// The kernels of Troupe's own on a device, as data: what to compute on which memory. gpu/kernels/bodies/ has the arithmetic, in functions
/// that run on host and device alike; dispatch() (gpu/kernels/launch/dispatch.hpp) finds the body for a call, and each Device launches it. Pointers
/// are device memory. Activations are NHWC and of the call's `type`; sums and parameters are float32. Every kernel gives the same bits each
/// time: sums run in a fixed order. Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "core/half.hpp"
#include "core/kernels.hpp"
#include "core/kernels_check.hpp"
#include "gpu/kernels/types.hpp"
#include "nn/graph.hpp"

namespace troupe::gpu {

/// to ← from, rounded to nearest even. Counts are elements.
struct Cast {
  const void* from = nullptr;
  void* to = nullptr;
  Type from_type = Type::fp32;
  Type to_type = Type::fp32;
  std::int64_t count = 0;
};
/// to NHWC of `type` ← from [batch, channels, height, width], float32. The channels of `to` may be more: zeros.
struct ImagesToNhwc {
  const float* from = nullptr;
  void* to = nullptr;
  TensorShape to_shape;
  std::int64_t channels = 0;  // of `from`
  Type type = Type::fp32;
};
/// y ← activation(x); y may be x.
struct ActivationForward {
  nn::Activation activation = nn::Activation::relu;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t count = 0;
  Type type = Type::fp32;
};
/// dx ← dy · f'(x), from y = f(x); dx may be dy.
struct ActivationBackward {
  nn::Activation activation = nn::Activation::relu;
  const void* y = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  std::int64_t count = 0;
  Type type = Type::fp32;
};
/// sums [columns] ← Σ over the rows of x [rows, columns]: the gradient of a bias.
struct ColumnSums {
  const void* x = nullptr;
  float* sums = nullptr;
  float* scratch = nullptr;  // column_sums_scratch() floats
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Type type = Type::fp32;
};
[[nodiscard]] std::size_t column_sums_scratch(std::int64_t rows, std::int64_t columns);

/// Windows as nn::PoolLayer has them, clipped at the edges of the input; average divides by the pixels inside.
struct PoolForward {
  nn::PoolKind kind = nn::PoolKind::max;
  const void* x = nullptr;
  void* y = nullptr;
  std::int32_t* winners =
      nullptr;  // max in training: row · width + column of the input's image, one for each element of y
  TensorShape input;
  TensorShape output;
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
  Type type = Type::fp32;
};
struct PoolBackward {   // one thread an element of dx: it reads the windows that cover it
  PoolForward forward;  // x is dx, y is dy
};
struct AdaptivePoolForward {  // nn::AdaptiveAveragePoolLayer
  const void* x = nullptr;
  void* y = nullptr;
  TensorShape input;
  TensorShape output;
  Type type = Type::fp32;
};
struct AdaptivePoolBackward {
  AdaptivePoolForward forward;  // x is dx, y is dy
};
struct LrnForward {  // nn::LrnLayer
  const void* x = nullptr;
  void* y = nullptr;
  TensorShape shape;
  nn::LrnLayer layer;
  Type type = Type::fp32;
};
struct LrnBackward {
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  TensorShape shape;
  nn::LrnLayer layer;
  Type type = Type::fp32;
};

/// Mean and inverse deviation of each channel of x over all pixels, or from sums that a convolution left, in one launch; running values move
/// as nn::BatchNormLayer says (null: they stay).
struct BatchStatistics {
  const void* x = nullptr;
  float* mean = nullptr;               // [channels]
  float* inverse_deviation = nullptr;  // [channels]: 1 / sqrt(σ² + epsilon)
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float* scratch = nullptr;  // batch_norm_scratch() floats
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  float epsilon = 1e-5F;
  float momentum = 0.1F;
  Type type = Type::fp32;
  float* variance = nullptr;       // [channels]: σ², for MoveStatistics; null: not kept
  const float* sum = nullptr;      // [channels]: Σ x, of a Convolution with statistics; null: x is summed here
  const float* squares = nullptr;  // [channels]: Σ x², with `sum`, which needs no scratch
};
/// What a loss finds over a batch, in device memory.
struct LossSums {
  double loss = 0;  // mean over the samples
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
  std::int64_t bad_label = -1;  // sample of a label outside the classes; -1: none
};
/// The running values move, in a later kernel than the statistics: not at all if the loss met a bad label, as on the CPU.
struct MoveStatistics {
  const float* mean = nullptr;
  const float* variance = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  const LossSums* sums = nullptr;  // null: always
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  float momentum = 0.1F;
};
[[nodiscard]] std::size_t batch_norm_scratch(std::int64_t pixels, std::int64_t channels);
/// y ← activation(weight · (x − mean) · deviation⁻¹ + bias + addend). Training: mean and inverse_deviation of BatchStatistics. Evaluation:
/// running values (`evaluation` set; inverse_deviation is then the running variance).
struct BatchNormForward {
  const void* x = nullptr;
  void* y = nullptr;
  const void* addend = nullptr;  // null: none
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  bool evaluation = false;
  bool relu = false;
  float epsilon = 1e-5F;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  Type type = Type::fp32;
};
/// The gradients of weight and bias: with g = dy · [y > 0] if relu, else dy:  dbias ← Σ g;  dweight ← Σ g · (x − mean) · deviation⁻¹
struct BatchNormGradients {
  const void* x = nullptr;
  const void* y =
      nullptr;  // for relu only; null: there was no addend, and its sign follows from x, which saves a read of memory
  const void* dy = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
  float* scratch = nullptr;  // batch_norm_scratch() floats
  bool relu = false;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  Type type = Type::fp32;
  const float* weight = nullptr;  // for relu without y, as bias
  const float* bias = nullptr;
};
/// dx ← weight · deviation⁻¹ · (g − dbias / m − x̂ · dweight / m), m = pixels; daddend ← g (null: none). dx may be dy.
struct BatchNormBackward {
  BatchNormGradients gradients;  // weight_gradient and bias_gradient are read
  const float* weight = nullptr;
  void* dx = nullptr;
  void* addend_gradient = nullptr;
};

/// y ← x / (1 − rate) where the unit is kept, else 0: the CPU's bits of Philox, keyed by (seed, node, lease, sample, unit). `lease` and
/// `first` are read from device memory, so that a captured step takes new ones. Backward is the same call on gradients. y may be x.
struct DropoutKey {  // in device memory
  std::uint64_t lease = 0;
  std::int64_t first = 0;
};
struct Dropout {
  const void* x = nullptr;
  void* y = nullptr;
  const DropoutKey* key = nullptr;
  std::uint64_t seed = 0;
  int node = 0;
  TensorShape shape;
  double rate = 0.5;
  Type type = Type::fp32;
};
/// y ← activation(Σ x), up to 8 inputs; y may be one of them.
struct AddUp {
  std::array<const void*, 8> x{};
  int inputs = 0;
  void* y = nullptr;
  bool relu = false;
  std::int64_t count = 0;
  Type type = Type::fp32;
};
/// Copies `channels` channels of every pixel, between tensors with `from_channels` and `to_channels`: joins and cuts.
struct CopyChannels {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t from_channels = 0;
  std::int64_t from_first = 0;
  std::int64_t to_channels = 0;
  std::int64_t to_first = 0;
  std::int64_t channels = 0;
  std::int64_t pixels = 0;
  Type type = Type::fp32;
};

/// to [batch, columns, rows] ← from [batch, rows, columns], of one type: between NHWC (rows are pixels, columns channels) and plain order.
struct Transpose {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t batch = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Type type = Type::fp32;
};

/// As cpu/layers/loss.hpp over z [rows, classes], float32. *sums ← the mean loss (without weight) and the counts of the first `*samples` rows.
/// gradient [rows, classes] of `gradient_type` ← weight · *loss_scale · d(mean over all rows)/dz (null: none); zeros from row *samples on, and
/// in rows with a bad label, which count nothing else. bad_label: the first of them.
struct LossKernel {
  nn::Loss loss = nn::Loss::softmax_cross_entropy;
  const float* z = nullptr;
  const std::int32_t* labels = nullptr;
  const std::int64_t* samples = nullptr;  // in device memory
  void* gradient = nullptr;
  LossSums* sums = nullptr;
  LossSums* row_sums = nullptr;  // scratch [rows]
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  double smoothing = 0;
  float weight = 1;
  const float* loss_scale = nullptr;  // in device memory: a captured step takes new ones; null: 1
  Type gradient_type = Type::fp32;
};

/// Training images from bytes as data::Preprocess makes them (data/preprocessing.hpp): a crop, perhaps mirrored, of
/// byte · scale[channel] + bias[channel, pixel of the source], zeros outside the source. In device memory, one for each sample.
struct Cut {
  std::int32_t top = 0;  // in pixels of the source; may be negative or hang over the end
  std::int32_t left = 0;
  std::int32_t mirror = 0;
};
struct BytesToNhwc {
  const std::uint8_t* from = nullptr;  // [batch, channels, height, width]
  void* to = nullptr;                  // its channels may be more than from_shape's: zeros
  const Cut* cuts = nullptr;           // [batch]
  const float* scale = nullptr;        // [channels]
  const float* bias = nullptr;         // [channels, height, width] of from_shape
  TensorShape from_shape;
  TensorShape to_shape;
  Type type = Type::fp32;
};

/// core::Kernels over flat float32 vectors, one variant a method; bits as core::reference_kernels().
struct Fill {
  float* y = nullptr;
  float value = 0;
  std::int64_t count = 0;
};
struct Scale {
  float* y = nullptr;
  float a = 0;
  std::int64_t count = 0;
};
struct ScaleBy {  // y ← *a · y, a in device memory: a captured step takes new ones
  float* y = nullptr;
  const float* a = nullptr;
  std::int64_t count = 0;
};
struct Axpy {
  float* y = nullptr;
  const float* x = nullptr;
  float a = 0;
  std::int64_t count = 0;
};
struct ScaleAdd {
  float* y = nullptr;
  const float* x = nullptr;
  float a = 0;
  float b = 0;
  std::int64_t count = 0;
};
struct Difference {
  float* y = nullptr;
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t count = 0;
};
struct ElasticPair {
  float* x = nullptr;
  float* center = nullptr;
  float alpha_worker = 0;
  float alpha_center = 0;
  std::int64_t count = 0;
};
struct ElasticDelta {
  float* x = nullptr;
  float* center = nullptr;
  float alpha_worker = 0;
  float alpha_center = 0;
  std::int64_t count = 0;
};
struct ReduceAll {
  std::array<float*, 16> all{};
  int vectors = 0;
  float scale = 1;
  std::int64_t count = 0;
};  // more: several calls
struct Clamp {
  float* y = nullptr;
  float limit = 0;
  std::int64_t count = 0;
};
struct Narrow {
  std::uint16_t* y = nullptr;
  const float* x = nullptr;
  core::HalfKind kind{};
  std::int64_t count = 0;
};
struct Widen {
  float* y = nullptr;
  const std::uint16_t* x = nullptr;
  core::HalfKind kind{};
  bool add = false;
  std::int64_t count = 0;
};
struct Optimize {  // optimize, or with `delta` optimize_delta
  core::OptimizerKind kind = core::OptimizerKind::sgd;
  float* x = nullptr;
  float* g = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  core::StepNumbers numbers{};  // core::step_numbers(); by value: an optimizer step is launched, never captured
  bool delta = false;
  std::int64_t count = 0;
};
/// *result ← Σ x², float64, the bits of core::Kernels::squared_norm. chunks: squared_norm_scratch() doubles.
struct SquaredNorm {
  const float* x = nullptr;
  double* chunks = nullptr;
  double* result = nullptr;
  std::int64_t count = 0;
};
[[nodiscard]] std::size_t squared_norm_scratch(std::int64_t count);
/// y ← y · min(1, norm / √*squared_norm), as core::clip does; a norm that is not finite leaves y as it is. Nothing reads the norm on the host.
struct LimitNorm {
  float* y = nullptr;
  const double* squared_norm = nullptr;
  float norm = 0;
  std::int64_t count = 0;
};
/// *result ← 1 if all |x| ≤ limit and there is no NaN, else 0. limit FLT_MAX: all_finite.
struct AllWithin {
  const float* x = nullptr;
  float limit = 0;
  std::int32_t* result = nullptr;
  std::int64_t count = 0;
};

/// *result ← XXH3-64 of the bytes. REQUIRES bytes > 240: shorter input has other formulas.
struct Xxh3 {
  const void* data = nullptr;
  std::uint64_t* scratch = nullptr;  // xxh3_scratch() words
  std::uint64_t* result = nullptr;
  std::int64_t bytes = 0;
};
[[nodiscard]] std::size_t xxh3_scratch(std::int64_t bytes);

using Kernel =
    std::variant<Cast, ImagesToNhwc, ActivationForward, ActivationBackward, ColumnSums, PoolForward, PoolBackward,
                 AdaptivePoolForward, AdaptivePoolBackward, LrnForward, LrnBackward, BatchStatistics, MoveStatistics,
                 BatchNormForward, BatchNormGradients, BatchNormBackward, Dropout, AddUp, CopyChannels, Transpose,
                 LossKernel, BytesToNhwc, Fill, Scale, ScaleBy, Axpy, ScaleAdd, Difference, ElasticPair, ElasticDelta,
                 ReduceAll, Clamp, Narrow, Widen, Optimize, SquaredNorm, LimitNorm, AllWithin, Xxh3>;

}  // namespace troupe::gpu
