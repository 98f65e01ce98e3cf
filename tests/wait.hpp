/// The only two ways in which a test lets time pass; scripts/check-orphans refuses sleeps in all other files of tests/. Thread-safe.
#pragma once

#include <chrono>
#include <thread>

namespace troupe::tests {

/// Longer than any condition takes on a slow machine under a sanitizer: only a hang lasts so long.
inline constexpr std::chrono::seconds kPatience{120};
/// The time between two looks at a condition.
inline constexpr std::chrono::milliseconds kBetweenLooks{3};

/// Waits until `condition()` holds; for conditions that nothing notifies of. Returns whether it holds.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds patience = kPatience) {
  for (const auto until = std::chrono::steady_clock::now() + patience; std::chrono::steady_clock::now() < until;
       std::this_thread::sleep_for(kBetweenLooks))
    if (condition()) return true;
  return condition();
}

/// Places an event at a moment that no condition names, or lets a fault last. Never a wait for something that should have happened by
/// then: what follows must hold however much or little happens meanwhile. Files that call it are listed in scripts/check-orphans.
inline void let_pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace troupe::tests
