/// Virtual time (sim/engine/event_queue.hpp) with actions as events. One thread.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/engine/event_queue.hpp"

namespace troupe::explore {

using core::Duration;

class EventQueue final : public core::Clock {
 public:
  using Action = std::function<void()>;

  [[nodiscard]] Duration now() const noexcept override { return events_.now(); }
  /// REQUIRES when >= now(), else std::logic_error.
  void at(Duration when, Action action);
  void after(Duration delay, Action action) { at(now() + delay, std::move(action)); }
  /// Moves time to the next action and runs it; false when there is none.
  bool run_next();
  [[nodiscard]] std::uint64_t performed() const noexcept { return events_.happened(); }

 private:
  sim::EventQueue events_;
  sim::Pool<Action> actions_;  // scheduled ones
};

}  // namespace troupe::explore
