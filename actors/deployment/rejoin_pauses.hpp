/// How long the rejoin manager waits before it tries to replace a worker again. Pure: the caller has the clock. One worker's; not thread-safe.
#pragma once

#include <chrono>
#include <optional>

#include "core/clock.hpp"

namespace troupe::actors {

inline constexpr std::chrono::seconds kShortestPause{2};
inline constexpr std::chrono::seconds kLongestPause = std::chrono::minutes(5);
/// A newcomer that is lost later than this after its admission did not fail because it was admitted.
inline constexpr std::chrono::seconds kSettled = std::chrono::minutes(2);

/// Each failure in a row doubles the pause after it, from 4 s up to kLongestPause.
class RejoinPauses {
 public:
  /// An open site could not become a member.
  void refused(core::Duration now);
  void admitted(core::Duration now);
  /// The member is lost: soon after its admission, this is a failure like a refusal, for each admission costs the run a pause.
  void lost(core::Duration now);

  [[nodiscard]] core::Duration not_before() const noexcept { return not_before_; }

 private:
  unsigned failures_ = 0;  // in a row
  core::Duration not_before_{0};
  std::optional<core::Duration> admitted_;
};

}  // namespace troupe::actors
