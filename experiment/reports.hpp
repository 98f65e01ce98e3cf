/// The recorder's input and a run's results. Plain structs: messages carry them, and Console shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/accounts/traffic.hpp"

namespace troupe::experiment {

inline constexpr double kUnknown = -1;  // of numbers that are never below 0

/// A run begins, or continues after a resume.
struct RunStarted {
  std::string name;
  std::string directory;
  std::string strategy;
  std::string model;
  std::string dataset;
  std::uint32_t workers = 0;
  std::uint32_t servers = 0;
  std::uint32_t epochs = 0;
  std::uint64_t parameters = 0;
  std::uint64_t epoch_samples = 0;
  double epoch_position = 0;  // epochs done: > 0 after a resume
  double lr_factor = 1;       // of a plateau schedule, so far
  // Sums of the earlier sessions.
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double train_s = 0;  // training time
  // The options of this session that its step times depend on, as configured: one entry for all workers, or one each.
  std::vector<std::int64_t> batch{};
  std::int64_t accumulate = 1;
  std::vector<double> slowdown{};
  bool operator==(const RunStarted&) const = default;
};

/// Adds to `total` the correct samples of a batch, a step or a report. What is not known of one (below 0) is not known of all.
inline void add_hits(std::int64_t hits, std::int64_t& total) noexcept {
  total = hits < 0 || total < 0 ? -1 : total + hits;
}

/// One worker, up to now. Sums since the worker began, unless noted.
struct WorkerProgress {
  std::uint32_t worker = 0;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double loss = 0;                   // mean over the samples since the last report
  double loss_sum = 0;               // Σ over samples since the last report
  std::int64_t top1 = 0;             // correct samples since the last report; below 0: a program does not say
  std::uint64_t recent_samples = 0;  // since the last report
  double compute_s = 0;              // with the pauses of cluster.slowdown and synthetic_step_ms
  double forward_s = 0;              // of it: forward and loss
  double backward_s = 0;             // of it: backward, with the checks of its gradients
  double optimizer_s = 0;            // of it: the optimizer, and the strategy's arithmetic on the worker's own vectors
  double exchange_s = 0;             // blocked while its exchange was in progress
  double wait_s = 0;                 // blocked by other members
  double load_s = 0;                 // blocked by its loader
  std::uint64_t exchanges = 0;
  std::uint64_t dropped = 0;
  std::uint64_t skipped = 0;
  std::uint64_t refused = 0;        // gradients and pushes with bad numbers (bad_updates.hpp)
  std::uint64_t passed = 0;         // skipped steps, whose leases were given up
  std::uint64_t replaced = 0;       // samples that could not be read, with others in their place (data.max_bad)
  std::uint64_t bytes = 0;          // exchanged, both directions
  std::uint64_t staleness_sum = 0;  // over `staleness_count` updates of shards, in versions of the centre
  std::uint64_t staleness_count = 0;
  std::uint64_t staleness_max = 0;
  double norm_sum = 0;  // Σ over steps of the gradient's Euclidean norm, before clipping
  double norm_max = 0;
  double recent_norm_sum = 0;  // since the last report
  std::uint64_t recent_steps = 0;
  std::vector<std::uint64_t> staleness{};  // updates by bin of strategies::StalenessHistogram
  std::vector<double> waits{};             // seconds of wait_s by cause: workers, then servers
  std::vector<std::uint64_t> done{};       // leases finished since the last report
  double loss_scale = 1;                   // of the latest step, in fp16
  std::vector<Traffic> traffic{};          // `bytes` by purpose and member; none: not known (virtual time)
  std::vector<std::uint64_t> given_up{};   // leases passed over since the last report: finished, but not computed
  double distance = kUnknown;  // ‖x − c‖ when it last met the centre; unknown: not measured since the last report
  bool operator==(const WorkerProgress&) const = default;
};

/// An evaluation of the model, at the end of an epoch or of the run.
struct EpochReport {
  std::uint32_t epoch = 0;  // epochs done
  std::uint32_t epochs = 0;
  std::uint64_t steps = 0;
  double train_loss = 0;  // mean over the epoch's steps
  double train_accuracy = 0;
  double test_loss = 0;
  double test_accuracy = 0;
  double test_top5 = -1;    // below 0: fewer than five classes
  double images_per_s = 0;  // of the epoch, all workers
  double lr = 0;
  double train_s = 0;         // training time of the run so far
  std::uint64_t samples = 0;  // of the run so far, all workers together
  bool operator==(const EpochReport&) const = default;
};

/// The model on the split that decides, when an evaluation was due: the validation split, or without one the test split.
struct EvaluationReport {
  bool validation = true;  // else the test split
  double epoch = 0;        // epochs done, fractional
  std::uint64_t steps = 0;
  double loss = 0;
  double accuracy = 0;
  double top5 = -1;           // below 0: fewer than five classes
  double lr_factor = 1;       // of the leases that follow
  double lr = 0;              // of the model's last step
  double train_s = 0;         // training time of the run so far
  std::uint64_t samples = 0;  // of the run so far, all workers together
  bool operator==(const EvaluationReport&) const = default;
};

/// The validation split in a summary. Numbers that are none: not evaluated, or not reached.
struct ValidationSummary {
  bool has = false;  // the run has a validation split
  double loss = kUnknown, accuracy = kUnknown, top5 = -1;
  double best_loss = kUnknown, best_accuracy = kUnknown, best_epoch = kUnknown, best_train_s = kUnknown;
  std::uint64_t evaluations = 0;
  bool operator==(const ValidationSummary&) const = default;
};

/// A line for the user: a checkpoint saved or refused, a warning, an interruption.
struct Note {
  enum class Level : std::uint8_t { info, warning, error };
  Level level = Level::info;
  std::string text;
  bool of_program = false;  // a line that a program of the user's prints
  bool operator==(const Note&) const = default;
};

/// A worker joins or leaves, or is not heard.
struct MemberReport {
  enum class Event : std::uint8_t {
    began,   ///< at the run's begin, where members are on nodes
    absent,  ///< the run begins without it
    joined,  ///< a new process takes the place of a lost or absent worker
    lost,
    silent,  ///< others report, and it does not
    heard,   ///< the end of a silence
  };
  std::uint32_t worker = 0;
  Event event = Event::lost;
  std::string node{};         // where it is, or was; empty: in the coordinator's process
  std::string reason{};       // one line; empty: none
  std::uint64_t steps = 0;    // that it has reported, a former worker of this rank included
  double epoch = 0;           // the run's position, in epochs
  double train_s = 0;         // training time of the run so far
  std::uint32_t members = 0;  // that take part now
  bool operator==(const MemberReport&) const = default;
};

/// Where the samples are. `size` = done + given_up + leased + free + omitted, of the present epoch.
struct LedgerReport {
  std::uint32_t epoch = 0;  // from 0
  std::uint64_t size = 0;
  std::uint64_t done = 0;      // computed
  std::uint64_t given_up = 0;  // in steps that were passed over
  std::uint64_t leased = 0;    // workers have them
  std::uint64_t free = 0;      // to be leased
  std::uint64_t omitted = 0;   // not in this epoch: a dropped tail, slices of lost workers
  // Of the run, all sessions included.
  std::uint64_t useful = 0;       // done, and in the model that the run goes on with
  std::uint64_t computed = 0;     // by any worker, counted each time
  std::uint64_t lost = 0;         // leased to workers that were lost
  std::uint64_t returned = 0;     // of these: leased again
  std::uint64_t passed = 0;       // given up
  std::uint64_t rolled_back = 0;  // had been useful, and are to be done again: behind the checkpoint of a resume
  double possible = 0;  // what the members that were there would have computed at their own rates without a pause
  double wall_s = 0;    // of all sessions
  bool operator==(const LedgerReport&) const = default;
};

/// Share of what was possible that is useful; kUnknown when nothing was.
[[nodiscard]] double goodput(const LedgerReport& ledger) noexcept;

/// The result of a run: summary.json and `--json` (docs/formats/summary.md). `time` is per worker, averaged.
struct Summary {
  std::string run, strategy, model, dataset, device = "cpu", precision = "fp32";
  std::uint32_t workers = 0, servers = 0, epochs = 0;
  std::uint64_t steps = 0, samples = 0;
  double wall_s = 0;
  double train_loss = 0, images_per_s = 0;
  double test_loss = 0, test_accuracy = 0, test_top5 = -1;  // top5 below 0: null
  std::uint64_t exchange_count = 0, exchange_bytes = 0, exchange_dropped = 0, exchange_skipped = 0;
  std::uint64_t refused = 0;  // gradients and pushes, summed over the workers
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  std::string center_hash;
  std::vector<WorkerProgress> per_worker;  // final values, in rank order
  std::string stopped_by{};  // before the last epoch: name(coordination::EarlyStop) or "interrupt"; empty: not
  ValidationSummary validation{};
  double time_to_target_s = kUnknown;  // of training; unknown: no target, or not reached
  LedgerReport ledger{};               // at the end; none possible: not known (replay, virtual time)
  bool operator==(const Summary&) const = default;
};

/// How a run ended. `error` has the code interrupted, diverged, …; the summary then describes the completed part.
struct RunEnd {
  Summary summary;
  bool failed = false;
  core::Error error;
  bool operator==(const RunEnd& other) const {
    return summary == other.summary && failed == other.failed && error.code == other.error.code &&
           error.message == other.error.message;
  }
};

/// One line of JSON with the keys of docs/formats/summary.md, in that order.
[[nodiscard]] std::string to_json(const Summary& summary);

}  // namespace troupe::experiment
