/// Code that needs the time takes a Clock. Real runs pass the steady clock, simulations a virtual one.
#pragma once

#include <chrono>

namespace troupe::core {

using Duration = std::chrono::nanoseconds;

/// Time since an arbitrary fixed origin. Thread-safe. Never goes back; changes of the wall clock have no effect.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Duration now() const noexcept = 0;
};

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Duration now() const noexcept override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

/// Advances only when advance() or set() is called. One thread.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Duration now() const noexcept override { return now_; }
  void advance(Duration by) noexcept { now_ += by; }
  void set(Duration to) noexcept { now_ = to; }

 private:
  Duration now_{0};
};

[[nodiscard]] constexpr double seconds(Duration d) noexcept { return std::chrono::duration<double>(d).count(); }

}  // namespace troupe::core
