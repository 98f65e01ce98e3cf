#include "actors/protocol/token_bucket.hpp"

#include <algorithm>

namespace troupe::actors {

bool TokenBucket::take(core::Duration now) {
  if (seen_.count() >= 0) left_ = std::min(at_once_, left_ + core::seconds(now - seen_) * per_second_);
  seen_ = now;
  if (used_up_ && left_ < per_second_) return false;
  used_up_ = left_ < 1;
  if (used_up_) return false;
  --left_;
  return true;
}

}  // namespace troupe::actors
