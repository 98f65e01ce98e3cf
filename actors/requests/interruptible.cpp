#include "actors/requests/interruptible.hpp"

#include <condition_variable>
#include <mutex>

#include "actors/requests/silence.hpp"

namespace troupe::actors {

void watch_movement(const Movement& movement, const std::stop_token& over, const std::function<void()>& silent) {
  constexpr SilenceDeadlines::Source kMovement = 0;
  const core::Duration look_every = std::min<core::Duration>(std::chrono::seconds(1), movement.silence);
  const core::SteadyClock clock;
  SilenceDeadlines silences;
  bool expired = false;
  silences.begin({kMovement}, movement.silence, [&] { expired = true; });
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  for (auto seen = movement.count.load(); !expired; silences.check(clock.now())) {
    never.wait_for(lock, over, look_every, [] { return false; });
    if (over.stop_requested()) return;
    if (const auto now = movement.count.load(); std::exchange(seen, now) != now) silences.moved(kMovement);
  }
  silent();
}

}  // namespace troupe::actors
