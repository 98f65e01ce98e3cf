/// look(): which members are silent while others report: a process that is stopped, swapped out or cut off. overdue(): which have been silent for
/// so long that they count as lost. A worker without leases is not looked at: it has nothing to do. One that waits for others, for the bound of ssp or
/// an exchange, reports once a second meanwhile (actors/worker/worker_waits.cpp). Pure: every moment is given in seconds. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::experiment {

class SilenceWatch {
 public:
  /// A worker is silent after this time, or after so many times its longest pause between two reports so far, if that is longer.
  static constexpr double kLeast_s = 2;
  static constexpr double kPauses = 10;
  /// Only while another worker has reported within this time: else all wait, for an evaluation or for each other.
  static constexpr double kOthers_s = 1;
  static constexpr double kMostBetween_s = 2;

  explicit SilenceWatch(std::uint32_t workers) : workers_(workers) {}

  /// The worker has so many leases more.
  void granted(std::uint32_t worker, std::size_t leases, double now_s);
  /// A report: so many leases are finished since the last one. Ends a silence: how long it was.
  std::optional<double> heard(std::uint32_t worker, std::size_t finished, double now_s);
  /// A new process has this rank, or none has.
  void forget(std::uint32_t worker) { workers_.at(worker) = {}; }
  /// The workers whose silence is noticed now, and its length; each once.
  struct Silent {
    std::uint32_t worker = 0;
    double for_s = 0;
  };
  [[nodiscard]] std::vector<Silent> look(double now_s);
  /// Workers with leases that have not reported for `limit_s`, or for kPauses times their longest such time before, if that is longer. Told again after as
  /// long again. Call it about once a second: of a longer time between two calls only kMostBetween_s count, because the process may have stood still.
  [[nodiscard]] std::vector<Silent> overdue(double now_s, double limit_s);

 private:
  struct Worker {
    std::optional<double> last{};  // none: no report yet
    double longest_s = 0;
    std::uint64_t reports = 0;
    std::size_t leases = 0;  // not finished
    bool silent = false;
    // Watched by overdue(), with leases:
    double unheard_s = 0;  // since its last report
    double longest_unheard_s = 0;
  };
  std::vector<Worker> workers_;
  std::optional<double> overdue_asked_s_{};
};

}  // namespace troupe::experiment
