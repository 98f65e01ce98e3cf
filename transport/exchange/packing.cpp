#include "transport/exchange/packing.hpp"

#include <algorithm>

namespace troupe::exchange {

Packing::Packing(core::ConstSpan marks) : arena_floats_(marks.size()) {
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == 0) continue;
    if (!ranges_.empty() && ranges_.back().end == i)
      ++ranges_.back().end;
    else
      ranges_.push_back({i, i + 1});
  }
}

/// Visits the intersections of the ranges with the slice: offset from the slice's beginning, and length.
template <class Visit>
void Packing::visit(std::size_t offset, std::size_t count, const Visit& range) const {
  const auto end = offset + count;
  auto next = std::ranges::upper_bound(ranges_, offset, {}, &Range::end);
  for (; next != ranges_.end() && next->begin < end; ++next) {
    const auto from = std::max(next->begin, offset);
    range(from - offset, std::min(next->end, end) - from);
  }
}

std::size_t Packing::packed(std::size_t offset, std::size_t count) const {
  std::size_t sum = 0;
  visit(offset, count, [&](std::size_t, std::size_t floats) { sum += floats; });
  return sum;
}

void Packing::pack(core::ConstSpan slice, std::size_t offset, core::Span dense) const {
  auto* to = dense.data();
  visit(offset, slice.size(),
        [&](std::size_t at, std::size_t floats) { to = std::copy_n(slice.data() + at, floats, to); });
}

void Packing::unpack(core::ConstSpan dense, std::size_t offset, core::Span slice) const {
  const auto* from = dense.data();
  visit(offset, slice.size(), [&](std::size_t at, std::size_t floats) {
    std::copy_n(from, floats, slice.data() + at);
    from += floats;
  });
}

void Packing::clear_padding(std::size_t offset, core::Span slice) const {
  std::size_t cleared = 0;
  visit(offset, slice.size(), [&](std::size_t at, std::size_t floats) {
    std::fill(slice.data() + cleared, slice.data() + at, 0.F);
    cleared = at + floats;
  });
  std::ranges::fill(slice.subspan(cleared), 0.F);
}

}  // namespace troupe::exchange
