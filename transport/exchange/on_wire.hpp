/// The form of a call's vector on the wire, at both ends: without the padding of arenas, in float32, or rounded to 16 bits there, back, or
/// both ways (core::Rounding). Pure functions over memory that the caller has, that of the kernels: a device's has no packing. Internal to exchange/, replays and tests.
#pragma once

#include <cstddef>
#include <optional>

#include "core/kernels.hpp"
#include "transport/endpoint.hpp"
#include "transport/exchange/packing.hpp"

namespace troupe::exchange {

/// What is rounded on the wire.
struct WireFormat {
  std::optional<core::HalfKind> half{};
  core::Rounding rounding = core::Rounding::both;
  [[nodiscard]] bool rounds_there() const noexcept { return half && rounding == core::Rounding::both; }
  [[nodiscard]] bool rounds_back() const noexcept { return half && rounding != core::Rounding::none; }
  /// The callee keeps the received vector and sends back its change.
  [[nodiscard]] bool returns_change() const noexcept { return half && rounding == core::Rounding::change; }
};

/// A vector as a member has it: a slice of an arena, at `offset`, whose padding does not travel; without a packing all of it does.
struct PaddedSlice {
  core::Span vector{};
  const Packing* packing = nullptr;
  std::size_t offset = 0;
  /// Floats on the wire.
  [[nodiscard]] std::size_t floats() const { return packing ? packing->packed(offset, vector.size()) : vector.size(); }
};

/// Memory for the wire form of one vector at one end.
struct WireMemory {
  core::Span dense{};       // float32
  core::Span before{};      // what was received; only where its change is sent back
  core::HalfSpan halves{};  // only where something is rounded
};
/// Floats of the memory that the caller needs beside its vector.
[[nodiscard]] std::size_t caller_floats(const PaddedSlice& slice, const WireFormat& format);
/// Cuts that memory. Where nothing is packed the dense form is the vector itself.
[[nodiscard]] WireMemory caller_memory(core::Span memory, const PaddedSlice& slice, const WireFormat& format);
/// The same at the callee, for a call of `floats` floats: its memory holds the received vector too.
[[nodiscard]] std::size_t callee_floats(std::size_t floats, const WireFormat& format);
[[nodiscard]] WireMemory callee_memory(core::Span memory, std::size_t floats, const WireFormat& format);

// The caller's end.
[[nodiscard]] transport::ConstMemoryView encode_request(const core::Kernels& kernels, const WireFormat& format,
                                                        const PaddedSlice& slice, const WireMemory& memory);
[[nodiscard]] transport::MemoryView answer_buffer(const core::Kernels& kernels, const WireFormat& format,
                                                  const WireMemory& memory);
/// Writes the received answer into the vector. `as_change`: as in WireAnswer.
void decode_answer(const core::Kernels& kernels, const WireFormat& format, const PaddedSlice& slice,
                   const WireMemory& memory, bool as_change);

// The callee's end.
[[nodiscard]] transport::MemoryView request_buffer(const core::Kernels& kernels, const WireFormat& format,
                                                   const WireMemory& memory);
void decode_request(const core::Kernels& kernels, const WireFormat& format, const WireMemory& memory);
struct WireAnswer {
  transport::ConstMemoryView view;
  bool as_change = false;
};
/// The answer is in `memory.dense`.
[[nodiscard]] WireAnswer encode_answer(const core::Kernels& kernels, const WireFormat& format,
                                       const WireMemory& memory);

/// Rounds the change from `before` to `now` into `halves`; `before` is scratch afterwards. Returns false when `half` cannot represent the
/// change (NaN, infinity, too large): `halves` is then `now`, rounded.
[[nodiscard]] bool round_change(const core::Kernels& kernels, core::HalfSpan halves, core::ConstSpan now,
                                core::Span before, core::HalfKind half);

}  // namespace troupe::exchange
