#include "sim/engine/event_queue.hpp"

#include <bit>
#include <stdexcept>

#include "sim/engine/virtual_time.hpp"

namespace troupe::sim {
namespace {

constexpr unsigned kBits = 8;  // per level

std::size_t byte_of(std::int64_t time, std::size_t level) noexcept {
  return static_cast<std::size_t>(time >> (kBits * level)) & 0xff;
}

}  // namespace

EventQueue::EventQueue() : levels_(kLevels) {}

std::size_t EventQueue::Level::filled_from(std::size_t slot) const noexcept {
  for (std::size_t word = slot / 64; word < filled.size(); ++word, slot = 64 * word) {
    const std::uint64_t rest = filled[word] >> (slot % 64);
    if (rest != 0) return slot + static_cast<std::size_t>(std::countr_zero(rest));
  }
  return kSlots;
}

void EventQueue::schedule(Duration when, EventKind kind, std::uint32_t who, std::uint64_t what) {
  if (when.count() < now_) throw std::logic_error("virtual time: an event is scheduled for a time that has passed");
  if (when > kEndOfTime) throw OutOfTime();
  ++scheduled_;
  put({when.count(), what, who, kind}, now_);
}

/// `base`: the time of the wheel; REQUIRES base <= event.at.
void EventQueue::put(const Event& event, std::int64_t base) {
  const auto differs = static_cast<std::uint64_t>(event.at ^ base);
  const std::size_t index = differs == 0 ? 0 : static_cast<std::size_t>(std::bit_width(differs) - 1) / kBits;
  auto& level = levels_[index];
  const auto place = byte_of(event.at, index);
  auto& slot = level.slots[place];
  if (slot.first == kNone) {
    level.filled[place / 64] |= std::uint64_t{1} << (place % 64);
    slot.first = slot.last = blocks_.take();
    blocks_[slot.last].next = kNone;
    blocks_[slot.last].count = 0;
  } else if (blocks_[slot.last].count == blocks_[slot.last].events.size()) {
    const auto fresh = blocks_.take();
    blocks_[fresh].next = kNone;
    blocks_[fresh].count = 0;
    slot.last = blocks_[slot.last].next = fresh;
  }
  auto& block = blocks_[slot.last];
  block.events[block.count++] = event;
  if (index == 0 && foresee_) foresee_(context_, event);
}

void EventQueue::free_first_block(Slot& slot) {
  const auto next = blocks_[slot.first].next;
  blocks_.release(slot.first);
  slot.first = next;
}

bool EventQueue::next(Event& event) {
  if (scheduled_ == 0) return false;
  auto& lowest = levels_[0];
  for (;;) {
    const auto place = lowest.filled_from(byte_of(now_, 0));
    if (place == kSlots) {
      move_down();
      continue;
    }
    auto& slot = lowest.slots[place];
    auto& block = blocks_[slot.first];
    if (read_ < block.count) {
      event = block.events[read_++];
      now_ = event.at;
      --scheduled_;
      ++happened_;
      return true;
    }
    read_ = 0;
    free_first_block(slot);
    if (slot.first == kNone) lowest.filled[place / 64] &= ~(std::uint64_t{1} << (place % 64));
  }
}

/// Moves the events of the next filled slot down, from the lowest level that has one, and time to that slot's start.
bool EventQueue::move_down() {
  for (std::size_t index = 1; index < kLevels; ++index) {
    auto& level = levels_[index];
    const auto place = level.filled_from(byte_of(now_, index));
    if (place == kSlots) continue;
    const auto above = ~std::int64_t{0} << (kBits * index);
    now_ = (now_ & (above * (std::int64_t{1} << kBits))) | static_cast<std::int64_t>(place) << (kBits * index);
    auto slot = level.slots[place];
    level.slots[place] = {};
    level.filled[place / 64] &= ~(std::uint64_t{1} << (place % 64));
    while (slot.first != kNone) {
      const auto& block = blocks_[slot.first];
      for (std::uint32_t i = 0; i < block.count; ++i) put(block.events[i], now_);
      free_first_block(slot);
    }
    return true;
  }
  return false;
}

}  // namespace troupe::sim
