/// A compiled step: flat lists of prepared primitives and kernels with bound memory, in execution order. Troupe looks up, creates
/// and allocates nothing while it runs (oneDNN itself makes small argument tables per primitive). Thread rule: owned by one
/// Replica, run by its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnl.hpp>

#include "core/buffer.hpp"
#include "cpu/kernels/kernel_call.hpp"
#include "nn/graph.hpp"

namespace troupe::cpu {

/// The passes that an operation is part of.
enum class When : std::uint8_t { always, training, evaluation };

/// Either a primitive with bound arguments or a kernel.
struct Operation {
  dnnl::primitive primitive;               // empty: `kernel` runs
  std::vector<dnnl_exec_arg_t> arguments;  // memories belong to Program::memories
  KernelCall kernel;
  When when = When::always;
  int node = 0;                // the graph node that it was added for
  std::string what;            // "convolution", "reorder", or the name of the kernel
  std::string implementation;  // oneDNN's name of it; empty for kernels
  double bytes = 0;            // of all its tensors but scratch memory
  int finished_node = -1;      // the graph node whose gradients are final after this operation
  int finished_bucket = -1;    // filled in by the replica

  [[nodiscard]] bool belongs_to(const StepContext& context) const noexcept {
    return when == When::always || (when == When::training) == context.training;
  }
  void run(const dnnl::stream& stream, const StepContext& context) const;
};

/// What one loss is computed on (nn::Head).
struct ProgramHead {
  float* outputs = nullptr;    // [batch, outputs]
  float* gradients = nullptr;  // of the outputs; scratch if not training
  double weight = 1;
};

struct Program {
  std::vector<Operation> refresh;  // working copies of parameters, after the arena changed
  std::vector<Operation> forward;
  std::vector<Operation> backward;
  std::vector<dnnl::memory> memories;  // all memories that the arguments refer to
  std::vector<dnnl::memory> inputs;    // the memories of the batch's images; rebound every step
  core::Buffer workspace;
  std::vector<ProgramHead> heads;  // the losses; the main one last
};

}  // namespace troupe::cpu
