/// Passes on whom a listening socket turned away, and keeps strangers from filling the log: at most kPerSecond of them in a
/// second, each short and printable. Those beyond are counted, and the next that is passed on says how many they were.
/// Thread rule: thread-safe. Never fails: what the hook throws is dropped, because whoever turns strangers away goes on.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/clock.hpp"
#include "transport/tcp_options.hpp"

namespace troupe::transport {

class RefusalReporter {
 public:
  static constexpr std::size_t kPerSecond = 10;
  using Hook = std::function<void(const Refusal&)>;

  /// `hook` may be empty; it is called by one thread at a time. `clock` outlives this.
  RefusalReporter(Hook hook, const core::Clock& clock) : hook_(std::move(hook)), clock_(clock) {}

  void report(std::string_view from, std::string_view why) noexcept;

 private:
  const Hook hook_;
  const core::Clock& clock_;
  std::mutex mutex_;
  core::Duration since_{0};    // when this second began
  std::size_t told_ = 0;       // in it
  std::size_t swallowed_ = 0;  // since the last that was told
};

}  // namespace troupe::transport
