#include "sim/explore/world/queue.hpp"

#include <utility>

namespace troupe::explore {

void EventQueue::at(Duration when, Action action) {
  const auto index = actions_.take();
  actions_[index] = std::move(action);
  events_.schedule(when, sim::EventKind::action, index);
}

bool EventQueue::run_next() {
  sim::Event event;
  if (!events_.next(event)) return false;
  const auto action = std::exchange(actions_[event.who], {});
  actions_.release(event.who);
  action();
  return true;
}

}  // namespace troupe::explore
