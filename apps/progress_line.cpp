#include "apps/progress_line.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "experiment/report/console_text.hpp"

namespace troupe::apps {

using report::Style;
using report::StyledLine;

StyledLine progress_line(const ProgressState& state, std::size_t columns, bool unicode) {
  StyledLine line(state.what, Style::bold);
  std::vector<std::string> after;
  if (state.done >= 0) after.push_back(fmt::format("  {:>3} %", static_cast<int>(100 * std::min(state.done, 1.0))));
  if (!state.text.empty()) after.push_back("  " + state.text);
  constexpr double kSmallest = 0.001;  // a forecast from less is a guess
  after.push_back(
      state.done >= kSmallest
          ? fmt::format("  {} left", report::clock_time(state.elapsed_s * (1 - std::min(state.done, 1.0)) / state.done))
          : "  " + report::clock_time(state.elapsed_s));
  if (state.done >= 0) line.add("  ").add(report::bar(state.done, columns, line, after, unicode), Style::cyan);
  for (auto& text : after) line.field(std::move(text));
  return line;
}

ProgressLine::ProgressLine(std::string what, Mode mode) : ProgressLine(std::move(what), mode, Times{}, stderr) {}

ProgressLine::ProgressLine(std::string what, Mode mode, const Times& times, std::FILE* stream)
    : stream_(stream),
      live_(mode == Mode::live || (mode == Mode::automatic && report::is_live_terminal(stream))),
      unicode_(report::speaks_utf8()),
      began_(std::chrono::steady_clock::now()),
      state_{.what = std::move(what)},
      region_(stream, live_ && report::allows_color(), report::Cursor::shown) {
  if (mode == Mode::quiet) return;
  thread_ = std::jthread([this, times](const std::stop_token& over) { draw(over, times); });
}

void ProgressLine::draw(const std::stop_token& over, const Times& times) {
  std::unique_lock lock(mutex_);
  for (auto next = live_ ? times.first : times.first_plain;; next = live_ ? times.every : times.every_plain) {
    wake_.wait_for(lock, over, next, [] { return false; });
    if (over.stop_requested()) break;
    auto now = state_;
    now.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (live_) {
      region_.draw({progress_line(now, region_.size().columns - 1, unicode_)});
    } else {
      constexpr std::size_t kColumns = 79;
      // Not fmt::print, which throws where nothing can be written: this thread has nobody to catch it.
      const auto text = progress_line(now, kColumns, false).render(std::string::npos, false) + '\n';
      std::fwrite(text.data(), 1, text.size(), stream_);
      std::fflush(stream_);
    }
    ++drawn_;
  }
  region_.close();
}

void ProgressLine::show(double done, std::string text) {
  const std::scoped_lock lock(mutex_);
  state_.done = done;
  state_.text = std::move(text);
}

void ProgressLine::begin(std::string what) {
  const std::scoped_lock lock(mutex_);
  state_ = {.what = std::move(what)};
}

void ProgressLine::clear() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

}  // namespace troupe::apps
