/// Progress of a command that computes for more than a moment, on standard error: on a terminal one line that is redrawn in place, else a
/// line every ten seconds. Short work prints nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "experiment/report/terminal.hpp"

namespace troupe::apps {

/// What a line says.
struct ProgressState {
  std::string what;    // "replay"
  double done = -1;    // share of the work; below 0: not known
  std::string text{};  // where it is, "segment 2 of 3"; may be empty
  double elapsed_s = 0;
};
/// "replay  =====-----   50 %  segment 1 of 2  0:04 left", or with an unknown share "checking  0:04". The bar fills the rest of `columns`.
[[nodiscard]] report::StyledLine progress_line(const ProgressState& state, std::size_t columns, bool unicode);

/// Draws on a thread of its own, so that long calls between two reports do not stop the clock. Create it after Interrupt, whose mask of
/// signals the thread takes over. Its methods are for one thread. While it lives nothing else writes to standard error, except after
/// clear().
class ProgressLine {
 public:
  struct Times {
    std::chrono::milliseconds first{1000}, every{200};                   // on a terminal
    std::chrono::milliseconds first_plain{10'000}, every_plain{10'000};  // elsewhere
  };
  enum class Mode : std::uint8_t { automatic, live, plain, quiet };
  explicit ProgressLine(std::string what, Mode mode = Mode::automatic);
  ProgressLine(std::string what, Mode mode, const Times& times, std::FILE* stream);
  /// Removes the line.
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Cheap: the thread draws it later. `done`: in [0, 1].
  void show(double done, std::string text = {});
  /// The work has a next part, and no bar yet.
  void begin(std::string what);
  /// Removes the line for good; returns when the thread has ended.
  void clear();
  /// How often it has been drawn. Any thread.
  [[nodiscard]] std::uint64_t drawn() const noexcept { return drawn_; }

 private:
  void draw(const std::stop_token& over, const Times& times);

  std::FILE* stream_;
  const bool live_;
  const bool unicode_;
  const std::chrono::steady_clock::time_point began_;
  std::mutex mutex_;  // of state_
  ProgressState state_;
  report::LiveRegion region_;  // the thread's
  std::atomic<std::uint64_t> drawn_ = 0;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace troupe::apps
