#include "sim/event_queue.hpp"

#include <stdexcept>

namespace troupe::sim {
namespace {

__extension__ using Wide = unsigned __int128;

/// Time first, then order, as one number: a comparison without a branch. Times are never negative.
Wide key(const Event& event) noexcept { return Wide{static_cast<std::uint64_t>(event.at)} << 64 | event.order; }

}  // namespace

EventQueue::EventQueue() : heap_(1) {}

void EventQueue::plan(Duration when, EventKind kind, std::uint32_t who, std::uint64_t what) {
  if (when.count() < now_) throw std::logic_error("virtual time: an event is planned for a time that has passed");
  const Event event{when.count(), planned_++, what, who, kind};
  if (end_ >> 2 == heap_.size()) heap_.emplace_back();
  std::size_t hole = end_++;
  while (hole > kRoot) {
    const std::size_t parent = (hole + 8) >> 2;
    if (key(at(parent)) < key(event)) break;
    at(hole) = at(parent);
    hole = parent;
  }
  at(hole) = event;
}

bool EventQueue::next(Event& event) {
  if (end_ == kRoot) return false;
  event = at(kRoot);
  now_ = event.at;
  ++happened_;
  const Event last = at(--end_);
  const Wide last_key = key(last);
  std::size_t hole = kRoot;
  for (;;) {
    const std::size_t first = 4 * hole - 8;
    if (first >= end_) break;
    const auto& children = heap_[first >> 2].events;
    const std::size_t count = end_ - first < 4 ? end_ - first : 4;
    std::size_t least = 0;
    Wide least_key = key(children[0]);
    for (std::size_t child = 1; child < count; ++child) {
      const Wide child_key = key(children[child]);
      const bool less = child_key < least_key;
      least = less ? child : least;
      least_key = less ? child_key : least_key;
    }
    if (last_key < least_key) break;
    at(hole) = children[least];
    hole = first + least;
  }
  at(hole) = last;
  return true;
}

}  // namespace troupe::sim
