/// What the part that runs jobs tells the others. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace troupe::service {

/// Each function may be called from any thread; null where there are no jobs.
struct JobFacts {
  std::function<std::optional<std::int64_t>(const std::string& run)> job_of_run{};
  std::function<std::pair<std::int64_t, std::int64_t>()> room{};  // jobs that may run at once, jobs that run
};

}  // namespace troupe::service
