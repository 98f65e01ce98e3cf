/// Progress for people, on standard error: live lines on a terminal (one per worker and the epoch's bar, at most ten times a
/// second), plain lines elsewhere (one per epoch, and at most one every five seconds between), errors only when quiet.
/// Owned and called by the recorder; not thread-safe. Knows no actor. What cannot be written is lost without an error: nobody
/// is there to read it.
#pragma once

#include <cstdio>
#include <memory>
#include <stop_token>

#include "experiment/reports.hpp"
#include "core/clock.hpp"

namespace troupe::report {

struct ConsoleOptions {
  enum class Mode : std::uint8_t { automatic, live, plain, quiet };
  Mode mode = Mode::automatic;  // automatic: live when the stream is a terminal
  bool color = true;            // NO_COLOR and plain switch it off
  std::FILE* stream = stderr;   // not owned
  std::stop_token stop{};  // once requested, a note says what happens now: only the console knows where to write it
};

class Console {
 public:
  Console(const ConsoleOptions& options, const core::Clock& clock);  // the clock outlives it
  ~Console();                                                        // leaves a visible cursor below what was drawn
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void started(const experiment::RunStarted& run);
  void progress(const experiment::WorkerProgress& progress);
  void epoch(const experiment::EpochReport& report);
  void note(const experiment::Note& note);
  /// The closing table: compute / exchange / wait / load per worker, in seconds and shares. Not the error: who called the run
  /// says that.
  void ended(const experiment::RunEnd& end);
  /// Call it often: draws the live lines or the progress line when enough time has passed.
  void tick();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::report
