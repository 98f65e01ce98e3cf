/// A run's scalars, options and results for TensorBoard: events.out.tfevents.* in the run directory (docs/formats/tensorboard.md). Owned and called by the
/// recorder; not thread-safe. Not synced: events do not justify the wait. A disk failure must not end a training run: the Error of the
/// first failed event is returned; later events are dropped silently until a write succeeds.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "experiment/reports.hpp"

namespace troupe::report {

class TensorBoard {
 public:
  /// A new file, named after `now` [seconds since 1970], this host and this process: one per resume. Errc::io, no_space.
  [[nodiscard]] static core::Result<TensorBoard> create(const std::string& run_directory, std::time_t now);
  TensorBoard(TensorBoard&& other) noexcept;
  TensorBoard& operator=(TensorBoard&& other) noexcept;
  ~TensorBoard();

  /// `at_s` in all functions: seconds since create().
  void started(const experiment::RunStarted& run);
  /// The options of a run for the HPARAMS tab: those in force, but not where it stores what. TensorBoard keeps the first ones that it reads of
  /// a run: a resume with other options does not change the tab.
  [[nodiscard]] core::Result<void> options(const core::Config& config);
  /// One event for all workers together, at most one in kEvery_s.
  [[nodiscard]] core::Result<void> progress(const experiment::WorkerProgress& progress, double at_s);
  [[nodiscard]] core::Result<void> epoch(const experiment::EpochReport& report, double at_s);
  [[nodiscard]] core::Result<void> evaluation(const experiment::EvaluationReport& report, double at_s);

  /// The results for the same tab. A run that a resume may continue (interrupted, a lost peer) has no end yet, only its results so far.
  [[nodiscard]] core::Result<void> ended(const experiment::RunEnd& end, double at_s);

  static constexpr double kEvery_s = 2;

 private:
  using Scalars = std::vector<std::pair<std::string, double>>;
  /// Sums of one worker up to now.
  struct Sums {
    std::uint64_t samples = 0;
    double busy_s = 0;  // of training: without evaluations, checkpoints and start-up
    double wait_s = 0;
    std::uint64_t staleness_sum = 0, staleness_count = 0;
  };

  TensorBoard(std::string path, int fd, double began_s) : path_(std::move(path)), fd_(fd), began_s_(began_s) {}
  /// A program may not tell one.
  static void add_accuracy(Scalars& values, const std::string& split, double accuracy);
  [[nodiscard]] core::Result<void> scalars(double at_s, std::uint64_t step, const Scalars& values);
  [[nodiscard]] core::Result<void> hparams(double at_s, const std::string& tag, const std::string& content);
  [[nodiscard]] core::Result<void> append(const std::string& event);
  [[nodiscard]] std::uint64_t samples() const;  // of the run, up to now

  std::string path_;
  int fd_ = -1;
  double began_s_ = 0;     // seconds since 1970
  std::int64_t size_ = 0;  // bytes of whole records
  bool failing_ = false;

  std::uint64_t samples_before_ = 0;  // of the sessions before
  std::vector<Sums> workers_;
  std::vector<Sums> told_;  // workers_ at the last event
  double told_at_s_ = 0;
  double recent_loss_ = 0;        // Σ over recent_samples_
  std::int64_t recent_top1_ = 0;  // below 0: a program does not say
  std::uint64_t recent_samples_ = 0;
  double recent_norm_ = 0;  // Σ over recent_steps_
  std::uint64_t recent_steps_ = 0;
};

}  // namespace troupe::report
