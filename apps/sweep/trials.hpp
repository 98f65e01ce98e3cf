/// The trials of a sweep: the search, restored from the recorded events, with each trial's run and its state on disk. One thread.
#pragma once

#include <string>
#include <vector>

#include "apps/sweep/sweep_log.hpp"
#include "apps/sweep/sweep_plan.hpp"
#include "apps/sweep/sweep_report.hpp"

namespace troupe::apps {

/// What a finished session of a run says.
struct Reading {
  bool reached = false;  // the rung, or its own end
  bool last = false;     // its own end: it cannot be trained further
  std::optional<double> score;
  std::optional<double> diverged_after{};  // epochs in all, of a run that diverged; none: not known
  bool untold = false;                     // a sound run without the metric, as of a program that tells its loss only
};

class SweepTrials {
 public:
  /// `plan` outlives it.
  explicit SweepTrials(const SweepPlan& plan);

  /// The events of earlier sessions, and what the directories of their runs say now. `path`: of the log, for messages. Errc::corrupt: an event
  /// does not follow from the ones before; Errc::io.
  [[nodiscard]] core::Result<void> restore(const std::vector<SweepEvent>& events, const std::string& path);
  /// A trial that the search has begun. Where its settings do not go together, invalid() says why.
  void add(std::size_t trial);
  void take(const sweep::Step& step, const sweep::Search::Result& result, double t);
  void take_failure(const sweep::Step& step, const std::string& error);

  /// The event that the step begins at t.
  [[nodiscard]] SweepEvent beginning(const sweep::Step& step, double t) const;
  /// What the trial's run says of the step.
  [[nodiscard]] Reading read(const sweep::Step& step) const;
  [[nodiscard]] std::int64_t epochs(const sweep::Step& step) const { return plan_.options.rungs[step.rung]; }

  [[nodiscard]] sweep::Search& search() noexcept { return search_; }
  [[nodiscard]] const sweep::Search& search() const noexcept { return search_; }
  [[nodiscard]] grid::ResolvedGrid& runs() noexcept { return runs_; }  ///< of all trials
  [[nodiscard]] const std::vector<TrialState>& states() const noexcept { return states_; }
  [[nodiscard]] const std::string& name(std::size_t trial) const { return states_[trial].name; }
  [[nodiscard]] const std::string& invalid(std::size_t trial) const { return states_[trial].invalid; }
  [[nodiscard]] grid::RunStatus& status(std::size_t trial) { return states_[trial].status; }
  /// Replaces the status, but for the score that is known.
  void set_status(std::size_t trial, grid::RunStatus status);
  [[nodiscard]] std::vector<grid::RunStatus> statuses() const;
  [[nodiscard]] double elapsed_s() const noexcept { return elapsed_s_; }  ///< of the recorded events
  [[nodiscard]] sweep::Record record(double elapsed_s, std::string state) const;
  /// The trial with the best score; none: there is no score.
  [[nodiscard]] std::optional<std::size_t> best() const;

 private:
  const SweepPlan& plan_;
  sweep::Search search_;
  grid::ResolvedGrid runs_;
  std::vector<TrialState> states_;
  double elapsed_s_ = 0;
};

}  // namespace troupe::apps
