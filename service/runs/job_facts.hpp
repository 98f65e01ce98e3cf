/// What the part that runs jobs tells the others. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe::service {

/// Jobs at once.
struct JobSlots {
  std::int64_t total = 0, running = 0;
};

/// Each function may be called from any thread; null where there are no jobs.
struct JobFacts {
  std::function<std::optional<std::int64_t>(const std::string& run)> job_of_run{};
  std::function<JobSlots()> slots{};
};

}  // namespace troupe::service
