#include "actors/requests/silence.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

SilenceDeadlines::Wait SilenceDeadlines::begin(std::vector<Source> sources, core::Duration deadline,
                                               std::function<void()> expired) {
  const Wait wait{next_++};
  waits_.emplace(wait, Waiting{std::move(sources), deadline, time_, std::move(expired)});
  return wait;
}

bool SilenceDeadlines::end(Wait wait) { return waits_.erase(wait) > 0; }

void SilenceDeadlines::moved(std::span<const Source> sources) {
  const auto has_moved = [&](Source source) { return std::ranges::find(sources, source) != sources.end(); };
  for (auto& [wait, waiting] : waits_)
    if (std::ranges::any_of(waiting.sources, has_moved)) waiting.since = time_;
}

void SilenceDeadlines::check(core::Duration now) {
  if (checked_.count() > 0) time_ += std::min(now - checked_, kMostAtOnce);
  checked_ = now;
  const auto is_over = [&](const auto& entry) { return time_ - entry.second.since >= entry.second.deadline; };
  for (auto over = std::ranges::find_if(waits_, is_over); over != waits_.end();
       over = std::ranges::find_if(waits_, is_over)) {
    const auto expired = std::move(over->second.expired);
    waits_.erase(over);
    expired();
  }
}

}  // namespace troupe::actors
