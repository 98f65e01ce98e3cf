/// What the workers of a replay have done, over its segments and sessions: the counts of the run's summary. One thread.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "data/order/lease.hpp"
#include "experiment/reports.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/run_totals.hpp"

namespace troupe::replay {

/// Sums of the training loss by epoch.
using EpochSums = std::map<std::uint32_t, experiment::EpochTotals>;
void add(EpochSums& sums, const EpochSums& more);

/// The leases with which a segment begins and ends, by their places in the run; none: it granted none.
struct LeaseSpan {
  std::optional<data::Lease> first, last;
};
/// Of the leases of all workers.
[[nodiscard]] LeaseSpan span_of(const std::vector<std::vector<data::Lease>>& leases);

class ReplayTotals {
 public:
  /// Nothing was replayed yet.
  [[nodiscard]] bool empty() const noexcept { return workers_.empty(); }
  /// A summary covers the run's life: of earlier sessions what was replayed. `start`: the totals where the session's first segment begins.
  void begin_session(const experiment::RunTotals& start, const LeaseSpan& leases);
  /// Adds a segment, by worker. `goes_on`: of the session of the segment before. A session has all its segments that still exist.
  void add(std::vector<experiment::WorkerProgress> workers, const EpochSums& epochs, const LeaseSpan& leases,
           bool goes_on);
  [[nodiscard]] std::uint64_t steps() const;  ///< over all workers, earlier sessions included
  /// Fills in counts, training loss and epochs. `complete`: the last segment has its end.
  void fill(experiment::Summary& summary, const experiment::RunSpec& spec, bool complete) const;

 private:
  [[nodiscard]] experiment::EpochTotals last_epoch() const;
  [[nodiscard]] std::uint32_t epochs(const experiment::RunSpec& spec, std::uint64_t samples, bool complete) const;

  std::vector<experiment::WorkerProgress> workers_;  // of the session
  experiment::RunTotals before_;                     // of earlier ones
  EpochSums epochs_;                                 // of the session
  bool began_within_epoch_ = false;                  // it began in the middle of an epoch, whose begin is in before_
  std::optional<data::Lease> last_;                  // the farthest lease of the run
};

}  // namespace troupe::replay
