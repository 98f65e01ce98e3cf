/// Progress for people on standard error: live lines on a terminal (one per worker, the loss and the epoch's bar, at most ten times a
/// second), else
/// plain lines (one per epoch, and between them at most one every five seconds); only errors when quiet. Owned and called by the recorder;
/// not thread-safe. Does not depend on actors. Failed writes are ignored.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <stop_token>

#include "core/clock.hpp"
#include "experiment/reports.hpp"

namespace troupe::report {

struct ConsoleOptions {
  enum class Mode : std::uint8_t { automatic, live, plain, quiet };
  Mode mode = Mode::automatic;                    // automatic: live when the stream is a terminal
  bool color = true;                              // NO_COLOR and plain switch it off
  std::FILE* stream = stderr;                     // not owned
  std::stop_token stop{};                         // on a request the console writes a note: only it knows where
  std::function<double(double)> learning_rate{};  // after so many epochs; none: not shown
};

class Console {
 public:
  Console(const ConsoleOptions& options, const core::Clock& clock);  // the clock outlives it
  ~Console();                                                        // leaves a visible cursor below the output
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void started(const experiment::RunStarted& run);
  void progress(const experiment::WorkerProgress& progress);
  /// Where the run is: what workers have computed is more or less than that where batches wrap around or steps are passed over.
  void ledger(const experiment::LedgerReport& report);
  void epoch(const experiment::EpochReport& report);
  void evaluation(const experiment::EvaluationReport& report);
  void note(const experiment::Note& note);
  /// The closing table: compute / exchange / wait / load per worker, in seconds and percent. The caller of the run reports the error.
  void ended(const experiment::RunEnd& end);
  /// Call it often: draws the live lines or the progress line when enough time has passed.
  void tick();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::report
