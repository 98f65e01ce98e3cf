#include "transport/refusal_reporter.hpp"

#include <chrono>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "transport/tcp_hello.hpp"

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
      return;
    }
    ++told_;
    std::string text = printable_text(std::as_bytes(std::span(why)));
    if (const std::size_t more = std::exchange(swallowed_, 0); more > 0)
      text += fmt::format(" (and {} more before, who are not listed)", more);
    hook_({std::string(from), std::move(text)});
  } catch (...) {  // a full disk under the log, memory that ran out
  }
}

}  // namespace troupe::transport
