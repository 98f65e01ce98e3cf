/// Element-wise kernels and row reductions on plain [rows, columns] memory; each does the work of several oneDNN primitives.
/// Written once (elementwise_loops.hpp), compiled per instruction set, chosen at the first call. Stateless, thread-safe. Sums run
/// over rows in order, so they do not depend on threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::cpu {

struct Elementwise {
  std::string_view name;  // "avx512", "avx2", "generic"

  /// dy [rows, columns] ← dy · f'(z), computed from y = f(z); bias [columns] ← column sums. By nn::Activation.
  using ActivationBackward = void (*)(const float* y, float* dy, float* bias, std::int64_t rows, std::int64_t columns);
  ActivationBackward activation_backward[3];
  /// sums [columns] ← Σ x over the rows
  void (*column_sums)(const float* x, float* sums, std::int64_t rows, std::int64_t columns);
  /// out ← a · b; out may be a or b
  void (*multiply)(const float* a, const float* b, float* out, std::size_t count);
  /// e [rows, columns] ← exp(z − row maximum), relative error below 2e-7; also fills maxima [rows] and sums [rows] (of e). e may be
  /// z.
  void (*exp_rows)(const float* z, float* e, float* maxima, float* sums, std::int64_t rows, std::int64_t columns);
};

/// The fastest variant that this CPU supports.
[[nodiscard]] const Elementwise& elementwise() noexcept;
/// All variants that this CPU supports, fastest first; the last is the generic one. For tests.
[[nodiscard]] std::vector<const Elementwise*> elementwise_variants();

extern const Elementwise kElementwiseAvx512;
extern const Elementwise kElementwiseAvx2;
extern const Elementwise kElementwiseGeneric;

}  // namespace troupe::cpu
