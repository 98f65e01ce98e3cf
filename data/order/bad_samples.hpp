/// The samples of a split that could not be read, up to a limit. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "core/error.hpp"

namespace troupe::data {

class BadSamples {
 public:
  explicit BadSamples(std::int64_t most) : most_(most) {}

  /// Counts sample `index` once. The error, if there are now more than the limit: `why`, and the limit if it is not 0.
  [[nodiscard]] core::Result<void> add(std::int64_t index, const core::Error& why);
  [[nodiscard]] std::int64_t count() const;

 private:
  std::int64_t most_;
  mutable std::mutex mutex_;
  std::set<std::int64_t> samples_;  // guarded by mutex_; at most most_ + 1
};

}  // namespace troupe::data
