/// A run and its workers, for tests of what the terminal shows.
#pragma once

#include "experiment/reports.hpp"

namespace troupe::report {

/// 2 workers.
inline const experiment::RunStarted kRun{.name = "demo",
                                         .directory = "runs/demo",
                                         .strategy = "easgd",
                                         .model = "lenet",
                                         .dataset = "glyphs",
                                         .workers = 2,
                                         .servers = 1,
                                         .epochs = 2,
                                         .parameters = 431080,
                                         .epoch_samples = 1000};

/// A worker after `samples` at 100 per second, computing 92 % of the time.
inline experiment::WorkerProgress worker(std::uint32_t rank, std::uint64_t samples) {
  const double busy_s = static_cast<double>(samples) / 100;
  return {.worker = rank,
          .steps = samples / 10,
          .samples = samples,
          .loss = 0.0431,
          .recent_samples = samples,
          .compute_s = 0.92 * busy_s,
          .exchange_s = 0.03 * busy_s,
          .wait_s = 0.04 * busy_s,
          .load_s = 0.01 * busy_s,
          .staleness_sum = 9,
          .staleness_count = 10,
          .staleness_max = 3,
          .done = {}};
}

}  // namespace troupe::report
