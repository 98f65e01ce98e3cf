#include "sim/explore/world/queue.hpp"

#include <stdexcept>

namespace troupe::explore {

void EventQueue::at(Duration when, Action action) {
  if (when < now_) throw std::logic_error("virtual time: an action in the past");
  scheduled_.emplace(std::pair{when, next_++}, std::move(action));
}

bool EventQueue::run_next() {
  if (scheduled_.empty()) return false;
  const auto node = scheduled_.extract(scheduled_.begin());
  now_ = node.key().first;
  ++performed_;
  node.mapped()();
  return true;
}

}  // namespace troupe::explore
