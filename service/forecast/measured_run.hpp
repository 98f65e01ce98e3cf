/// What a run has measured so far in this session, from its metrics.jsonl: how far it was when, and what its exchanges and evaluations cost.
/// Thread rule: a pure function of a file.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "core/error.hpp"
#include "service/forecast/moments.hpp"

namespace troupe::service {

struct MeasuredRun {
  std::string model;
  std::uint64_t parameters = 0, epoch_samples = 0;
  double epochs = 0, begun_at = 0;  // of the run; done before this session
  double exchange_bytes = 0;        // of all workers, both directions
  double exchange_s = 0;            // that all workers were blocked by them, added up
  double evaluation_s = 0;          // that training paused at the end of an epoch, on average
  std::uint64_t position = 0;       // bytes of the file that are in this
  Moments moments;                  // from the first step on, evaluations in them
};

inline constexpr std::uint64_t kLongestMetrics = std::uint64_t{256} << 20;

/// `run`: relative to `directory`; no symbolic link is followed. Errc::config: there is no such run. data: it has not begun, no worker has
/// reported yet, or its file is longer than kLongestMetrics. interrupted, io.
[[nodiscard]] core::Result<MeasuredRun> measure_run(const std::string& directory, const std::string& run,
                                                    const std::stop_token& stop);

}  // namespace troupe::service
