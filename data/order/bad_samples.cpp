#include "data/order/bad_samples.hpp"

#include <fmt/format.h>

namespace troupe::data {

core::Result<void> BadSamples::add(std::int64_t index, const core::Error& why) {
  const std::lock_guard lock(mutex_);
  samples_.insert(index);
  if (static_cast<std::int64_t>(samples_.size()) <= most_) return {};
  if (most_ == 0) return tl::unexpected(why);
  return core::fail(why.code, fmt::format("{} (unreadable samples so far: {}; data.max_bad = {})", why.message,
                                          samples_.size(), most_));
}

std::int64_t BadSamples::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(samples_.size());
}

}  // namespace troupe::data
