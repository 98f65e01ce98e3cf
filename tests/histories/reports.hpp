/// The oracle's view of metrics.jsonl: the reported epochs and their values. Pure.
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

/// One session: the lines after a `started` line.
struct Reported {
  double from = 0;  ///< epochs done before
  std::vector<EpochLine> epochs{};
  bool ended = false;
};

/// Returns one line per violation: an epoch that is reported twice or not at all, a missing or invalid loss. Epochs that a resume undid do
/// not count. `epochs`: number of epochs that the run has done.
[[nodiscard]] std::vector<std::string> check_reports(const std::vector<Reported>& sessions, std::uint32_t epochs);

}  // namespace troupe::histories
