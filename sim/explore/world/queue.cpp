#include "sim/explore/world/queue.hpp"

#include <stdexcept>

namespace troupe::explore {

void EventQueue::at(Duration when, Action action) {
  if (when < now_) throw std::logic_error("virtual time: an action in the past");
  planned_.emplace(std::pair{when, next_++}, std::move(action));
}

bool EventQueue::run_next() {
  if (planned_.empty()) return false;
  const auto node = planned_.extract(planned_.begin());
  now_ = node.key().first;
  ++performed_;
  node.mapped()();
  return true;
}

}  // namespace troupe::explore
