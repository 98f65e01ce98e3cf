/// Operations that are run again and again in one order. Thread rule: as Stream.
#pragma once

#include <memory>
#include <span>

#include "gpu/program/program.hpp"

namespace troupe::gpu {

/// The first run executes each operation by itself, so that libraries load their code; the second is captured, and later ones launch the
/// captured StepGraph. Allocates nothing from the third run on.
class Sequence {
 public:
  Sequence() = default;
  /// Those of `operations` that belong to the pass. They outlive this object and stay as they are.
  Sequence(std::span<const Operation> operations, bool training) : operations_(operations), training_(training) {}

  /// `captures`: whether the device captures; becomes false when it fails to, and the operations then run by themselves.
  [[nodiscard]] core::Result<void> run(Stream& stream, bool& captures);
  [[nodiscard]] bool is_captured() const noexcept { return graph_ != nullptr; }

 private:
  [[nodiscard]] std::unique_ptr<StepGraph> capture(Stream& stream) const;

  std::span<const Operation> operations_;
  bool training_ = false;
  bool has_run_ = false;
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace troupe::gpu
