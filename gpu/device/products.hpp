/// What convolutions and matrix products compute, as data: a Device makes a plan from a description, and host tests check the
/// descriptions of whole networks. Layouts: activations NHWC; weights [outputs, kernel, kernel, channels / groups]; all dense.
/// Thread rule: plain values.
#pragma once

#include <optional>
#include <string>

#include "gpu/kernels/types.hpp"
#include "nn/graph.hpp"

namespace troupe::gpu {

/// Every operand of an execution is aligned to so many bytes: libraries read that much at a time.
inline constexpr std::int64_t kTensorAlignment = 16;

enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

struct ConvolutionShape {
  TensorShape input;
  TensorShape output;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  /// Elements of w.
  [[nodiscard]] std::int64_t weights() const noexcept {
    return output.channels * kernel * kernel * (input.channels / groups);
  }
  auto operator<=>(const ConvolutionShape&) const = default;
};

/// forward:           y ← activation(conv(x, w) + bias + addend)      bias [outputs] and addend are of `type`
/// backward_data:     dx ← conv'(dy, w)
/// backward_weights:  dw ← conv'(x, dy)                               dw is of `weight_gradient`
/// x, y, dx, dy, w, bias have `type`. Sums are float32. (Libraries fuse a bias only in the type of the tensors.)
///
/// statistics: forward also writes sum[k] ← Σ y and squares[k] ← Σ y² over the pixels of each channel k, float32, for the batch norm that
/// reads y: it overwrites both, and needs not find zeros. Of y as it is stored, or as it was before it was rounded to `type`: libraries do
/// either, HostDevice the former. The two differ by at most u · Σ|y| and 3u · Σ y², u being the type's unit roundoff (2⁻⁸ of bf16, 2⁻¹¹ of
/// fp16); rounding errors have no preferred sign, so that means over many pixels agree far better. Only of a 16-bit type, without addend and
/// activation: gpu/kernels/bodies/channel_sums.hpp says why, and how good a variance such sums give.
struct Convolution {
  Direction direction = Direction::forward;
  ConvolutionShape shape;
  Type type = Type::fp32;
  Type weight_gradient = Type::fp32;
  Math math = Math::fp32;
  bool bias = false;                           // forward
  bool addend = false;                         // forward
  std::optional<nn::Activation> activation{};  // forward
  bool deterministic = false;                  // the same bits each time: no atomic additions
  bool statistics = false;                     // forward
  auto operator<=>(const Convolution&) const = default;
};
/// "forward 64x56x56 3x3 s1 p1 g1 → 64x56x56, bf16, bias, relu": for plan.json, messages and profiles. Unique for each description and batch.
[[nodiscard]] std::string to_string(const Convolution& convolution);

/// The memory of one execution, by role; unused ones are null. forward: x, w, bias, addend → y, sum, squares. backward_data: y (= dy), w → x (= dx).
/// backward_weights: x, y (= dy) → w (= dw).
struct ConvolutionOperands {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* addend = nullptr;
  float* sum = nullptr;      // [outputs], with statistics
  float* squares = nullptr;  // [outputs], with statistics
};

/// Row-major: d [m, n] ← op(a) · op(b) + bias, op(a) [m, k], op(b) [k, n]; a transposed operand is stored the other way
/// round. bias [n], of `output`. No activation: cuBLASLt's relu is max(x, 0), which turns NaN into 0 and so would hide that a run
/// diverges.
struct MatrixProduct {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  Type type = Type::fp32;    // of a and b
  Type output = Type::fp32;  // of d
  Math math = Math::fp32;
  bool bias = false;
  bool deterministic = false;
  auto operator<=>(const MatrixProduct&) const = default;
};
[[nodiscard]] std::string to_string(const MatrixProduct& product);

struct MatrixOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
};

}  // namespace troupe::gpu
