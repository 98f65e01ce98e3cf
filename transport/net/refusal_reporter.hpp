/// Passes on whom a listening socket turned away, and keeps strangers from filling the log: at most kPerSecond of them in a
/// second, each short and printable. Those beyond are counted; how many they were is said with the next that is passed on, or
/// by itself when no more come, two seconds after the last of them at most.
/// Thread rule: thread-safe; a thread of its own, from the first that is counted only. Never fails: what the hook throws is
/// dropped, because whoever turns strangers away goes on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "transport/net/refusal.hpp"

namespace troupe::transport {

class RefusalReporter {
 public:
  static constexpr std::size_t kPerSecond = 10;
  using Hook = std::function<void(const Refusal&)>;

  /// `hook` may be empty; it is called by one thread at a time, and never after the destructor. `clock` outlives this.
  RefusalReporter(Hook hook, const core::Clock& clock) : hook_(std::move(hook)), clock_(clock) {}

  void report(std::string_view from, std::string_view why) noexcept;

 private:
  void tell_rest(const std::stop_token& stop) noexcept;

  const Hook hook_;
  const core::Clock& clock_;
  std::mutex mutex_;
  std::condition_variable_any counted_;
  core::Duration since_{0};    // when this second began
  std::size_t told_ = 0;       // in it
  std::size_t swallowed_ = 0;  // since the last that was told
  std::jthread rest_;          // last: it ends before what it looks at
};

}  // namespace troupe::transport
