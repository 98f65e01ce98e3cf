#include "apps/client/reconnecting.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

namespace troupe::apps {

void pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any pause;
  std::unique_lock lock(mutex);
  pause.wait_for(lock, stop, time, [] { return false; });
}

core::Result<void> follow_events(ServiceClient& client, const std::string& path, std::string& last_id,
                                 const FollowOptions& options, const std::stop_token& stop) {
  using Time = std::chrono::steady_clock;
  auto heard = Time::now();
  auto pause = options.first_pause;
  const auto on_event = [&](const ServerEvent& event) {
    heard = Time::now();
    pause = options.first_pause;
    options.on_event(event);
  };
  while (!stop.stop_requested()) {
    const auto began = Time::now();
    auto ended = options.before ? options.before() : core::Result<void>();
    if (ended) ended = client.follow(path, last_id, on_event);
    if (stop.stop_requested()) break;
    if (!may_pass(ended.error())) return ended;
    // A stream that lasted was a connection, whether or not anything has happened in it.
    constexpr std::chrono::seconds kLasted{20};
    if (Time::now() - began > kLasted) {
      heard = Time::now();
      pause = options.first_pause;
    }
    if (options.patience.count() > 0 && Time::now() - heard > options.patience)
      return core::fail(ended.error().code,
                        fmt::format("{}; given up after {} s", ended.error().message,
                                    std::chrono::round<std::chrono::seconds>(options.patience).count()));
    if (options.on_lost) options.on_lost(ended.error(), pause);
    pause_for(pause, stop);
    pause = std::min(2 * pause, options.longest_pause);
  }
  return {};
}

}  // namespace troupe::apps
