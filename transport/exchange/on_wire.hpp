/// One end's vector of a call, and how it travels: as float32, or rounded there, back, or both (core::Rounding). Internal to exchange/,
/// and to who tests it. Owns what is rounded; the vector is somebody else's. One thread.
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
  /// Rounding::change, at the callee: `before` has the vector's length, and is for what came.
  OnWire(core::Span vector, std::optional<core::HalfKind> half, core::Rounding rounding, core::Span before = {});

  // The caller's end.
  [[nodiscard]] transport::ConstMemoryView going(const core::Kernels& kernels);
  [[nodiscard]] transport::MemoryView room_for_answer();
  /// What has come, into the vector. `as_change`: what the callee's answer() said.
  void take_answer(const core::Kernels& kernels, bool as_change);

  // The callee's.
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

/// What a callee sends of a vector that was `before` and is `now`: its change, rounded, in `halves`; `before` is scratch afterwards. False
/// where the change is no number that `half` has: what came could not be used, and `halves` are the vector itself.
[[nodiscard]] bool round_change(const core::Kernels& kernels, core::HalfSpan halves, core::ConstSpan now,
                                core::Span before, core::HalfKind half);

}  // namespace troupe::exchange
