#include "actors/deployment/rejoin_pauses.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

void RejoinPauses::refused(core::Duration now) {
  constexpr unsigned kMostDoublings = 10;
  failures_ = std::min(failures_ + 1, kMostDoublings);
  not_before_ = now + std::min<core::Duration>(kShortestPause * (1U << failures_), kLongestPause);
}

void RejoinPauses::admitted(core::Duration now) { admitted_ = now; }

void RejoinPauses::lost(core::Duration now) {
  const auto since = std::exchange(admitted_, std::nullopt);
  if (!since) return;
  if (now - *since < kSettled) return refused(now);
  failures_ = 0;
}

}  // namespace troupe::actors
