#include "sim/explore/world/memory.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace troupe::explore {
namespace {

core::HostAllocator& allocator() {
  static core::HostAllocator instance;
  return instance;
}

bool meet(Range a, Range b) noexcept { return a.offset < b.offset + b.count && b.offset < a.offset + a.count; }

std::string name(Slot slot) {
  return "slot " + std::to_string(static_cast<int>(slot.kind)) + "[" + std::to_string(static_cast<int>(slot.index)) +
         "]";
}

}  // namespace

std::uint64_t checksum(core::ConstSpan values) noexcept {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3u;
  return hash;
}

void poison(core::Span values) noexcept {
  std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
}

core::Buffer floats(std::size_t count) { return core::Buffer::allocate(allocator(), count).value(); }

Range cut(std::size_t total, std::size_t parts, std::size_t part) noexcept {
  const auto edge = [&](std::size_t p) {
    const std::size_t blocks = (total + core::kAlignmentFloats - 1) / core::kAlignmentFloats;
    return std::min(total, blocks * p / parts * core::kAlignmentFloats);
  };
  return {edge(part), edge(part + 1) - edge(part)};
}

void Memory::add(Slot slot) { slots_.try_emplace(slot, floats(size_)); }

bool Memory::lent(Slot slot, Range range) const noexcept {
  return std::any_of(loans_.begin(), loans_.end(),
                     [&](const Loan& loan) { return loan.slot == slot && meet(loan.range, range); });
}

core::Span Memory::use(Slot slot, Range range) {
  if (lent(slot, range)) throw Violation(name(slot) + " is used while it is lent");
  const auto found = slots_.find(slot);
  return found == slots_.end() ? core::Span{} : found->second.view().subspan(range.offset, range.count);
}

core::ConstSpan Memory::peek(Slot slot) const { return slots_.at(slot).view(); }

core::Span Memory::lend(Slot slot, Range range) {
  const auto view = use(slot, range);
  if (!slots_.contains(slot)) throw Violation(name(slot) + " is lent, but Needs does not name it");
  loans_.push_back({slot, range});
  return view;
}

void Memory::give_back(Slot slot, Range range) {
  const auto loan = std::find_if(loans_.begin(), loans_.end(), [&](const Loan& l) {
    return l.slot == slot && l.range.offset == range.offset && l.range.count == range.count;
  });
  if (loan == loans_.end()) throw Violation(name(slot) + " comes back twice");
  loans_.erase(loan);
}

Parcel::Parcel(core::Span home, Carriage carriage, Transfer kind)
    : home_(home), carriage_(carriage), kind_(kind), contents_(home) {
  if (carriage_ == Carriage::carried && !home.empty()) {
    copy_ = floats(home.size());
    contents_ = copy_.view();
    if (kind_ == Transfer::pull) {
      poison(contents_);  // a pull sends no data to the server
    } else {
      std::copy(home.begin(), home.end(), contents_.begin());
    }
    if (kind_ == Transfer::push) {
      sent_ = floats(home.size());
      std::copy(home.begin(), home.end(), sent_.view().begin());
    }
    poison(home_);
  }
  home_checksum_ = checksum(home_);
  seal();
}

core::Span Parcel::open() {
  if (checksum(contents_) != checksum_) throw Violation("a slice on loan was changed on its way or while it was held");
  return contents_;
}

void Parcel::seal() { checksum_ = checksum(contents_); }

void Parcel::unpack() {
  const auto contents = open();
  if (carriage_ == Carriage::in_place) return;
  if (checksum(home_) != home_checksum_) throw Violation("a worker wrote to a slice that was away");
  const core::ConstSpan back = kind_ == Transfer::push ? core::ConstSpan(sent_.view()) : core::ConstSpan(contents);
  std::copy(back.begin(), back.end(), home_.begin());
}

}  // namespace troupe::explore
