/// Reports refused connections to a hook, and keeps pending connections from filling the log: at most kPerSecond reports a second, each
/// short and printable. Further refusals are counted. The next report includes their number; without a next one, a separate report follows
/// at most two seconds after the last refusal.
/// Thread rule: thread-safe; starts a thread of its own at the first counted refusal. Never fails: exceptions of the hook are dropped,
/// because the listener must go on.
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
  using Hook = std::function<void(const RefusedConnection&)>;

  /// `hook` may be empty. One thread at a time calls it, never after the destructor. `clock` outlives this object.
  RefusalReporter(Hook hook, const core::Clock& clock) : hook_(std::move(hook)), clock_(clock) {}

  void report(std::string_view from, std::string_view why) noexcept;

 private:
  void tell_rest(const std::stop_token& stop) noexcept;

  const Hook hook_;
  const core::Clock& clock_;
  std::mutex mutex_;
  std::condition_variable_any counted_;
  core::Duration since_{0};    // begin of the current second
  std::size_t told_ = 0;       // reports in this second
  std::size_t swallowed_ = 0;  // refusals counted since the last report
  std::jthread rest_;          // last member: it ends before the members that it uses
};

}  // namespace troupe::transport
