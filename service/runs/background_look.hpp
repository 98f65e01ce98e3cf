/// Looks at the directories of runs on a thread of its own, through a connection of its own to the store, so that who asks the store waits only as long
/// as it wants to. It looks only when it is told. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "store/database.hpp"

namespace troupe::service {

class BackgroundLook {
 public:
  using Clock = std::chrono::steady_clock;

  /// `database`: of the store of `directory`, for this alone. `stop`: no look begins after it, and nobody waits for one.
  BackgroundLook(std::unique_ptr<store::Database> database, std::string directory, std::stop_token stop = {});
  /// Ends a look that is under way, and waits for that: the time of some hundred directories, and store::kBusyWait if another process writes.
  ~BackgroundLook();
  BackgroundLook(const BackgroundLook&) = delete;
  BackgroundLook& operator=(const BackgroundLook&) = delete;

  /// The number of the next look, which begins at `when`, or as soon as the one that is under way ends.
  std::uint64_t begin(Clock::time_point when);
  /// That of the look that has begun and goes on; 0: there is none.
  [[nodiscard]] std::uint64_t under_way() const;
  /// Whether one goes on or is to come.
  [[nodiscard]] bool is_wanted() const;
  /// Whether that look ends before `until` and before a stop.
  [[nodiscard]] bool wait(std::uint64_t look, Clock::time_point until);

  struct State {
    Clock::time_point begun, ended;  // the last look; at first when this was made
    std::size_t directories = 0;     // that a look has seen
    bool usable = true;           // it could read the directories and the store, or another process worked on the store
    std::int64_t generation = 0;  // of the store as it saw it; 0: unknown
  };
  [[nodiscard]] State state() const;

 private:
  void work(const std::stop_token& stop);
  /// Says in `state` how it went.
  void look(State& state, const std::stop_token& stop);

  std::unique_ptr<store::Database> database_;
  std::string directory_;
  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable_any changed_;
  std::uint64_t wanted_ = 0, begun_ = 0, done_ = 0;
  Clock::time_point when_;  // the look that is wanted may begin
  State state_;
  std::jthread thread_;
  std::stop_callback<std::function<void()>> ends_;  // the thread, with the stop that this was told
};

}  // namespace troupe::service
