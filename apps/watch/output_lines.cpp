#include "apps/watch/output_lines.hpp"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace troupe::apps {

void OutputLines::print(std::string_view line) {
  const std::scoped_lock lock(mutex_);
  if (failure_) return;
  const auto text = std::string(line) + "\n";
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  failure_ = core::from_errno(errno, "write to", "standard output");
  stop_.request_stop();
}

void OutputLines::print_now(std::string_view line) {
  const auto now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  print(fmt::format("{:%Y-%m-%d %H:%M:%S}  {}", local, line));
}

std::optional<core::Error> OutputLines::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

}  // namespace troupe::apps
