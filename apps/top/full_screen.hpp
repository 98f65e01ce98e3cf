/// The terminal while a program has all of it: the other screen, no cursor, keys as they come. What it changes it restores: when it ends,
/// and before a signal that kills the process (SIGSEGV and its like) does so. One at a time; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "apps/top/screen.hpp"
#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::apps {

/// Whether standard input and standard output are a terminal that can show a whole screen.
[[nodiscard]] bool has_screen();

/// Blocks the signals that FullScreen reads, in this thread and in all that it starts afterwards: call it before any thread starts.
void block_screen_signals();

class FullScreen {
 public:
  /// REQUIRES has_screen() and block_screen_signals(). Errc::io.
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  [[nodiscard]] core::Result<void> open();

  struct Input {
    std::string bytes{};
    bool resized = false;  // or continued: draw all again
    bool suspend = false;  // a request to stop for a while
    bool ended = false;    // the terminal is gone, or a signal asks to end
    int signal = 0;        // which
  };
  /// Waits for keys, signals, or `waker` (an eventfd, which it empties), at most so long.
  [[nodiscard]] Input wait(int waker, std::chrono::milliseconds at_most);

  [[nodiscard]] static ScreenSize size();
  /// Draws rows that differ from what is there. A terminal that takes nothing is left alone.
  void draw(const std::vector<ScreenRow>& rows, const ScreenSize& size, bool color);
  /// Draws everything the next time.
  void forget() noexcept { drawn_.clear(); }
  /// Restores the terminal, stops the process until it is continued, and takes the terminal again.
  void suspend();

 private:
  void enter();
  void set_modes();
  void leave() noexcept;

  core::FileDescriptor signals_;
  std::vector<std::string> drawn_;  // by row
  ScreenSize drawn_size_{0, 0};
  bool entered_ = false;
};

}  // namespace troupe::apps
