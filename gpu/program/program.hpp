/// A compiled step: flat lists of operations on fixed device memory, in execution order. Nothing is looked up or allocated while it runs.
/// Thread rule: owned by one Replica, run by its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/buffer.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// The passes that an operation is part of.
enum class When : std::uint8_t { always, training, evaluation };

struct ConvolutionWork {
  std::shared_ptr<const ConvolutionPlan> plan;
  ConvolutionOperands operands;
  void* workspace = nullptr;
};
struct MatrixWork {
  std::shared_ptr<const MatrixPlan> plan;
  MatrixOperands operands;
  void* workspace = nullptr;
};
struct CopyWork {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};
using Work = std::variant<Kernel, ConvolutionWork, MatrixWork, CopyWork>;

struct Operation {
  Work work;
  When when = When::always;
  int node = 0;            // the graph node that it was added for
  std::string what;        // for readers: "conv1 forward 4x227x227 → …", "pool1 pool forward"
  int finished_node = -1;  // the graph node whose gradients are final after this operation

  [[nodiscard]] bool belongs_to(bool training) const noexcept {
    return when == When::always || (when == When::training) == training;
  }
  [[nodiscard]] core::Result<void> run(Stream& stream) const;
};

/// Runs those of the operations that belong to the pass, up to the first error.
[[nodiscard]] core::Result<void> run_all(std::span<const Operation> operations, bool training, Stream& stream);

/// What a step reads besides images and labels; one copy to the device brings it and the labels, which follow at kLabelsOffset.
struct StepInput {
  DropoutKey key;
  std::int64_t samples = 0;
  float loss_scale = 1;  // of fp16
  float unscale = 1;     // 1 / loss_scale
};
inline constexpr std::size_t kLabelsOffset = 64;
static_assert(sizeof(StepInput) <= kLabelsOffset);

/// Where forward reads a batch's images. They are brought there before it (gpu/input_buffers.hpp).
struct ImagesInput {
  void* memory = nullptr;
  TensorShape shape{};  // its channels may be more than the model's: zeros
  Type type = Type::fp32;
  bool is_plain = true;  // [batch, channels, height, width], float32; else NHWC
};

struct Program {
  std::vector<Operation> refresh;  // working copies of parameters, after the arena changed
  std::vector<Operation> forward;  // with the losses
  std::vector<Operation> backward;
  core::Buffer workspace;  // device memory of all that follows and of everything between operations
  ImagesInput images;
  std::byte* input = nullptr;   // StepInput and labels
  float* outputs = nullptr;     // [batch, outputs] of the last layer
  LossSums* sums = nullptr;     // of each head; the main one last
  std::vector<double> weights;  // of each head
};

}  // namespace troupe::gpu
