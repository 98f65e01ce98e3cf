/// A run's ledger of samples and its goodput (docs/formats/metrics.md, "The ledger"), over all sessions: the lease scheduler knows where the
/// samples are, the reports of workers what was computed, and the last ledger line of metrics.jsonl what earlier sessions cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/order/lease.hpp"
#include "experiment/reports.hpp"

namespace troupe::experiment {

/// The ledger's part of a checkpoint that a session begins with.
struct LedgerStart {
  std::optional<LedgerReport>
      before{};  ///< the last that an earlier session recorded; none: an older program's run, or a new one
  std::uint64_t computed = 0;             ///< if there is none: RunTotals::samples,
  double wall_s = 0;                      ///< RunTotals::wall_s,
  std::vector<WorkerProgress> workers{};  ///< and SessionTotals::workers
};

/// Plain state, without a clock: every moment is given in seconds since the session began. One thread.
class LedgerKeeper {
 public:
  /// `restored`: of the lease scheduler with which the session begins.
  LedgerKeeper(std::uint32_t workers, const LedgerStart& start, const data::LeaseAccounts& restored);

  void joined(std::uint32_t worker, double now_s);
  void left(std::uint32_t worker, double now_s);
  /// A worker was lost that had leases of so many samples; `again`: they are granted again.
  void lost(std::uint64_t samples, bool again);

  /// `workers`: their sums of this session, by rank.
  [[nodiscard]] LedgerReport report(const data::LeaseAccounts& accounts, const std::vector<WorkerProgress>& workers,
                                    double now_s) const;

 private:
  struct Presence {
    double until_now_s = 0;         // of ended memberships
    std::optional<double> since{};  // of the present one
  };
  LedgerReport before_;
  std::vector<Presence> presence_;
};

/// Samples that these workers would have computed in `seconds_of(worker)`, each at its own mean rate while it computes; one that has computed
/// nothing yet counts with the mean of the others' rates.
[[nodiscard]] double possible_samples(const std::vector<WorkerProgress>& workers, const std::vector<double>& seconds);

/// The sums over the run in the last whole line of kind "ledger" of a metrics.jsonl; none: there is none, or no such file. Reads backwards from the
/// end: the file of a run of days has gigabytes.
[[nodiscard]] std::optional<LedgerReport> last_ledger(const std::string& metrics_file);
/// Epochs done, by the last whole ledger line; none: there is none, or its numbers make no sense (run_position.hpp).
[[nodiscard]] std::optional<double> last_position(const std::string& metrics_file);

}  // namespace troupe::experiment
