/// A token bucket: how much of something a member may send, some at once, then so many per second.
#pragma once

#include "core/clock.hpp"

namespace troupe::actors {

/// Once all is taken, nothing is given until a second's worth is there again: what is refused comes in few gaps. A value; not thread-safe.
class TokenBucket {
 public:
  /// REQUIRES per_second ≤ at_once.
  constexpr TokenBucket(double at_once, double per_second)
      : at_once_(at_once), per_second_(per_second), left_(at_once) {}

  /// Takes one. False: there is none. `now` never goes back.
  [[nodiscard]] bool take(core::Duration now);

 private:
  double at_once_, per_second_;
  double left_;
  bool used_up_ = false;
  core::Duration seen_{-1};  // when `left_` was true; below 0: never
};

}  // namespace troupe::actors
