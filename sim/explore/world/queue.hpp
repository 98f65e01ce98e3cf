/// Virtual time: actions run in order of time; actions of one time run in the order in which they were scheduled. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "core/clock.hpp"

namespace troupe::explore {

using core::Duration;

class EventQueue final : public core::Clock {
 public:
  using Action = std::function<void()>;

  [[nodiscard]] Duration now() const noexcept override { return now_; }
  /// REQUIRES when >= now(), else std::logic_error.
  void at(Duration when, Action action);
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }
  /// Moves time to the next action and runs it; false when there is none.
  bool run_next();
  [[nodiscard]] std::uint64_t performed() const noexcept { return performed_; }

 private:
  std::map<std::pair<Duration, std::uint64_t>, Action> scheduled_;
  Duration now_{0};
  std::uint64_t next_ = 0;
  std::uint64_t performed_ = 0;
};

}  // namespace troupe::explore
