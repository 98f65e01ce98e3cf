#include "transport/exchange/on_wire.hpp"

namespace troupe::exchange {

using core::Rounding;

OnWire::OnWire(core::Span vector, std::optional<core::HalfKind> half, Rounding rounding, core::Span before)
    : vector_(vector), half_(half), rounding_(rounding), before_(before) {}

transport::MemoryView OnWire::halves() {
  rounded_.resize(vector_.size());
  return {reinterpret_cast<std::byte*>(rounded_.data()), rounded_.size() * sizeof(std::uint16_t),
          core::MemorySpace::host};
}

transport::ConstMemoryView OnWire::going(const core::Kernels& kernels) {
  if (!rounds_there()) return transport::view_of(core::ConstSpan(vector_));
  const auto view = halves();
  kernels.narrow(rounded_, vector_, *half_);
  return view;
}

transport::MemoryView OnWire::room_for_answer() { return rounds_back() ? halves() : transport::view_of(vector_); }

void OnWire::take_answer(const core::Kernels& kernels, bool as_change) {
  if (!rounds_back()) return;
  if (as_change)
    kernels.add_wide(vector_, rounded_, *half_);
  else
    kernels.widen(vector_, rounded_, *half_);
}

transport::MemoryView OnWire::room() { return rounds_there() ? halves() : transport::view_of(vector_); }

void OnWire::take(const core::Kernels& kernels) {
  if (rounds_there()) kernels.widen(vector_, rounded_, *half_);
  if (half_ && rounding_ == Rounding::change) kernels.copy(before_, vector_);
}

OnWire::Answer OnWire::answer(const core::Kernels& kernels) {
  if (!rounds_back()) return {transport::view_of(core::ConstSpan(vector_)), false};
  const auto view = halves();
  if (rounding_ == Rounding::change) return {view, round_change(kernels, rounded_, vector_, before_, *half_)};
  kernels.narrow(rounded_, vector_, *half_);
  return {view, false};
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
