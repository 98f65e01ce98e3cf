/// Whole lines on standard output from several threads; what is read from elsewhere ends when nothing can be written any more. Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>

#include "core/error.hpp"

namespace troupe::apps {

class OutputLines {
 public:
  /// `stop` is asked to stop when a line cannot be written.
  explicit OutputLines(std::stop_source stop) : stop_(std::move(stop)) {}
  /// `line` without its end.
  void print(std::string_view line);
  /// The same with the local time before it.
  void print_now(std::string_view line);
  [[nodiscard]] std::optional<core::Error> failure() const;

 private:
  mutable std::mutex mutex_;
  std::stop_source stop_;
  std::optional<core::Error> failure_;
};

}  // namespace troupe::apps
