/// What bench_kernels measures: a line per kernel. scripts/check-orphans fails on a kernel that none of kernel_lines_*.cpp names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::bench {

inline constexpr std::size_t kVectors = 12;

/// A kernel over flat vectors, limited by memory.
struct Line {
  std::string name;
  double passes;  // floats read plus floats written, per float of a vector
  std::function<void(const core::Kernels&, const std::vector<core::Span>&)> run;  // over kVectors vectors of ones
};

/// core/kernels.hpp, run by the variant of the kernels that is measured.
[[nodiscard]] std::vector<Line> vector_lines();
/// What stands on them or beside them: exchanges over arenas, packing, dropout, and the CPU backend's passes over plain memory.
[[nodiscard]] std::vector<Line> step_lines(std::size_t floats);

/// A kernel of the CPU backend that is limited by arithmetic; one thread.
struct ConvolutionLine {
  std::string name;
  double flops;  // of the dense product
  std::function<void()> run;
};
/// Empty where this CPU lacks the instructions.
[[nodiscard]] std::vector<ConvolutionLine> convolution_lines();

}  // namespace troupe::bench
