#include "transport/exchange/on_wire.hpp"

namespace troupe::exchange {

namespace {

constexpr std::size_t kHalvesPerFloat = sizeof(float) / sizeof(std::uint16_t);

std::size_t floats_of_halves(std::size_t halves, const WireFormat& format) {
  return format.rounds_back() ? (halves + kHalvesPerFloat - 1) / kHalvesPerFloat : 0;  // what rounds there rounds back
}

/// The halves are at the end.
core::HalfSpan halves_at(core::Span memory, std::size_t floats, const WireFormat& format) {
  if (!format.rounds_back()) return {};
  return {reinterpret_cast<std::uint16_t*>(memory.last(floats_of_halves(floats, format)).data()), floats};
}

transport::MemoryView view_of(const core::Kernels& kernels, core::HalfSpan halves) {
  return {reinterpret_cast<std::byte*>(halves.data()), halves.size_bytes(), kernels.space()};
}

transport::MemoryView view_of(const core::Kernels& kernels, core::Span floats) {
  return transport::view_of(floats, kernels.space());
}

}  // namespace

std::size_t caller_floats(const PaddedSlice& slice, const WireFormat& format) {
  const auto floats = slice.floats();
  return (slice.packing ? core::align_floats(floats) : 0) + floats_of_halves(floats, format);
}

WireMemory caller_memory(core::Span memory, const PaddedSlice& slice, const WireFormat& format) {
  const auto floats = slice.floats();
  return {.dense = slice.packing ? memory.first(floats) : slice.vector, .halves = halves_at(memory, floats, format)};
}

std::size_t callee_floats(std::size_t floats, const WireFormat& format) {
  const bool ends_aligned = format.rounds_back();  // something follows
  const auto dense = ends_aligned ? core::align_floats(floats) : floats;
  return (format.returns_change() ? 2 : 1) * dense + floats_of_halves(floats, format);
}

WireMemory callee_memory(core::Span memory, std::size_t floats, const WireFormat& format) {
  return {.dense = memory.first(floats),
          .before = format.returns_change() ? memory.subspan(core::align_floats(floats), floats) : core::Span{},
          .halves = halves_at(memory, floats, format)};
}

transport::ConstMemoryView encode_request(const core::Kernels& kernels, const WireFormat& format,
                                          const PaddedSlice& slice, const WireMemory& memory) {
  if (slice.packing) slice.packing->pack(slice.vector, slice.offset, memory.dense);
  if (!format.rounds_there()) return view_of(kernels, memory.dense);
  kernels.narrow(memory.halves, memory.dense, *format.half);
  return view_of(kernels, memory.halves);
}

transport::MemoryView answer_buffer(const core::Kernels& kernels, const WireFormat& format, const WireMemory& memory) {
  return format.rounds_back() ? view_of(kernels, memory.halves) : view_of(kernels, memory.dense);
}

void decode_answer(const core::Kernels& kernels, const WireFormat& format, const PaddedSlice& slice,
                   const WireMemory& memory, bool as_change) {
  if (format.rounds_back() && as_change)
    kernels.add_wide(memory.dense, memory.halves, *format.half);
  else if (format.rounds_back())
    kernels.widen(memory.dense, memory.halves, *format.half);
  if (slice.packing) slice.packing->unpack(memory.dense, slice.offset, slice.vector);
}

transport::MemoryView request_buffer(const core::Kernels& kernels, const WireFormat& format, const WireMemory& memory) {
  return format.rounds_there() ? view_of(kernels, memory.halves) : view_of(kernels, memory.dense);
}

void decode_request(const core::Kernels& kernels, const WireFormat& format, const WireMemory& memory) {
  if (format.rounds_there()) kernels.widen(memory.dense, memory.halves, *format.half);
  if (format.returns_change()) kernels.copy(memory.before, memory.dense);
}

WireAnswer encode_answer(const core::Kernels& kernels, const WireFormat& format, const WireMemory& memory) {
  if (!format.rounds_back()) return {view_of(kernels, memory.dense), false};
  if (format.returns_change())
    return {view_of(kernels, memory.halves),
            round_change(kernels, memory.halves, memory.dense, memory.before, *format.half)};
  kernels.narrow(memory.halves, memory.dense, *format.half);
  return {view_of(kernels, memory.halves), false};
}

bool round_change(const core::Kernels& kernels, core::HalfSpan halves, core::ConstSpan now, core::Span before,
                  core::HalfKind half) {
  const float most = half == core::HalfKind::fp16 ? core::kLargestFp16 : core::kLargestBf16;
  kernels.difference(before, now, before);
  const bool usable = kernels.all_within(before, most);
  kernels.narrow(halves, usable ? core::ConstSpan(before) : now, half);
  return usable;
}

}  // namespace troupe::exchange
