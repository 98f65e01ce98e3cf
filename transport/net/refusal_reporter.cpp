#include "transport/net/refusal_reporter.hpp"

#include <chrono>
#include <span>
#include <string>

#include <fmt/format.h>

#include "transport/net/refusal.hpp"

namespace troupe::transport {

using namespace std::chrono_literals;

void RefusalReporter::report(std::string_view from, std::string_view why) noexcept {
  try {
    if (!hook_) return;
    const std::lock_guard lock(mutex_);
    const core::Duration now = clock_.now();
    if (told_ == 0 || now - since_ >= 1s) {
      since_ = now;
      told_ = 0;
    }
    if (told_ == kPerSecond) {
      ++swallowed_;
      if (!rest_.joinable()) rest_ = std::jthread([this](const std::stop_token& stop) { tell_rest(stop); });
      if (swallowed_ == 1) counted_.notify_one();
      return;
    }
    ++told_;
    std::string text = printable_text(std::as_bytes(std::span(why)));
    if (const std::size_t more = std::exchange(swallowed_, 0); more > 0)
      text += fmt::format(" (and {} more before, who are not listed)", more);
    hook_({std::string(from), std::move(text)});
  } catch (...) {  // a full disk under the log, out of memory
  }
}

void RefusalReporter::tell_rest(const std::stop_token& stop) noexcept {
  while (!stop.stop_requested()) {
    try {
      std::unique_lock lock(mutex_);
      counted_.wait(lock, stop, [this] { return swallowed_ > 0; });
      // The next refusal reports the count and begins a new second. This thread reports it only if there is no next refusal.
      counted_.wait_for(lock, stop, 1s, [] { return false; });
      if (stop.stop_requested() || swallowed_ == 0 || clock_.now() - since_ < 1s) continue;
      const auto rest = std::exchange(swallowed_, 0);
      hook_({fmt::format("{} more", rest), "they came too fast to be listed"});
    } catch (...) {  // as above
    }
  }
}

}  // namespace troupe::transport
