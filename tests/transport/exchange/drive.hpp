/// Delivers completions until a condition holds.
#pragma once

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "core/clock.hpp"
#include "transport/completion_queue.hpp"

namespace troupe::exchange::testing {

inline constexpr core::Duration kPatience = std::chrono::seconds{120};  // only a hang takes so long

/// Hands completions of `queue` to `deliver` until `done` holds; fails the test after a long time.
template <class Deliver, class Done>
void drive(transport::CompletionQueue& queue, const core::Clock& clock, const Deliver& deliver, const Done& done) {
  const auto deadline = transport::after(clock, kPatience);
  std::vector<transport::Completion> completions;
  queue.poll(completions);
  deliver(completions);
  while (!done()) {
    completions.clear();
    if (const auto waited = queue.wait(completions, deadline); !waited) {
      ADD_FAILURE() << "hangs: " << waited.error().message;
      return;
    }
    deliver(completions);
  }
}

}  // namespace troupe::exchange::testing
