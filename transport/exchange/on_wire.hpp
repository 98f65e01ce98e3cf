/// The vector of a call at one end, and its form on the wire: float32, or rounded to 16 bits there, back, or both ways (core::Rounding).
/// Internal to exchange/ and its tests. Owns the rounded copy; borrows the vector. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/kernels.hpp"
#include "transport/endpoint.hpp"

namespace troupe::exchange {

class OnWire {
 public:
  OnWire() = default;
  /// Rounding::change at the callee: `before`, of the vector's length, keeps the received values.
  OnWire(core::Span vector, std::optional<core::HalfKind> half, core::Rounding rounding, core::Span before = {});

  // The caller's end.
  [[nodiscard]] transport::ConstMemoryView going(const core::Kernels& kernels);
  [[nodiscard]] transport::MemoryView room_for_answer();
  /// Writes the received answer into the vector. `as_change`: as in the callee's Answer.
  void take_answer(const core::Kernels& kernels, bool as_change);

  // The callee's end.
  [[nodiscard]] transport::MemoryView room();
  void take(const core::Kernels& kernels);
  struct Answer {
    transport::ConstMemoryView view;
    bool as_change = false;
  };
  [[nodiscard]] Answer answer(const core::Kernels& kernels);

 private:
  [[nodiscard]] bool rounds_there() const noexcept { return half_ && rounding_ == core::Rounding::both; }
  [[nodiscard]] bool rounds_back() const noexcept { return half_ && rounding_ != core::Rounding::none; }
  [[nodiscard]] transport::MemoryView halves();

  core::Span vector_;
  std::optional<core::HalfKind> half_;
  core::Rounding rounding_ = core::Rounding::both;
  core::Span before_;
  std::vector<std::uint16_t> rounded_;
};

/// Rounds the change from `before` to `now` into `halves`; `before` is scratch afterwards. Returns false when `half` cannot represent the
/// change (NaN, infinity, too large): `halves` is then `now`, rounded.
[[nodiscard]] bool round_change(const core::Kernels& kernels, core::HalfSpan halves, core::ConstSpan now,
                                core::Span before, core::HalfKind half);

}  // namespace troupe::exchange
