/// The oracle's view of metrics.jsonl: which epochs a run has reported, and what it said of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::histories {

struct EpochLine {
  std::uint32_t epoch = 0;  ///< epochs done
  std::uint64_t steps = 0;
  std::optional<double> train_loss{};  ///< none: null
  std::optional<double> test_loss{};
  std::optional<double> images_per_s{};
};

/// One session: what follows a `started` line.
struct Reported {
  double from = 0;  ///< epochs done before
  std::vector<EpochLine> epochs{};
  bool ended = false;
};

/// A line for each thing that must not be: an epoch that the run's course reports twice or not at all, a loss of nothing. What a resume
/// went back behind is no part of the course. `epochs`: that the run has done.
[[nodiscard]] std::vector<std::string> check_reports(const std::vector<Reported>& sessions, std::uint32_t epochs);

}  // namespace troupe::histories
