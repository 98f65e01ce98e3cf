/// How long each operation of a compiled step takes. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::cpu {

/// The parts of a step.
enum class StepPart : std::uint8_t { refresh, forward, backward };

/// One operation, as a mean over the measured steps.
struct OperationTime {
  std::string layer;  // name of the graph's node
  StepPart part = StepPart::forward;
  std::string what;            // "convolution", "reorder", or the name of Troupe's own kernel
  std::string implementation;  // oneDNN's name of it; empty for own kernels
  double seconds = 0;
  double flops = 0;  // of matrix products and convolutions as the model defines them, without padding; 0 for others
  double bytes = 0;  // of all tensors that it reads or writes, each once
};

struct Breakdown {
  std::vector<OperationTime> operations;  // in the order of the step
  double loss_seconds = 0;
  double optimizer_seconds = 0;
  int steps = 0;
};

}  // namespace troupe::cpu
