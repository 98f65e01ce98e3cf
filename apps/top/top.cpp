#include "apps/top/top.hpp"

#include <algorithm>
#include <csignal>

#include "apps/top/full_screen.hpp"
#include "experiment/report/terminal.hpp"

namespace troupe::apps {
namespace {

constexpr std::chrono::milliseconds kIdle{1'000};  // between two looks at nothing
constexpr std::chrono::milliseconds kEscape{50};   // until an escape that came alone is the key

/// Whether to go on.
bool obey(const std::vector<Key>& keys, View& view, FullScreen& terminal) {
  for (const auto key : keys) {
    if (key == Key::quit) return false;
    if (key == Key::suspend) terminal.suspend();
    if (key == Key::redraw) terminal.forget();
    view.press(key);
  }
  return true;
}

}  // namespace

core::Result<void> show_live(LiveSource& source) {
  block_screen_signals();
  LatestView latest;
  std::jthread reader;
  FullScreen terminal;  // ends first: what still reads must not keep the terminal
  if (auto opened = terminal.open(); !opened) return opened;
  reader = std::jthread([&](const std::stop_token& stop) { source.follow(latest, stop); });
  const bool color = report::allows_color(), unicode = report::speaks_utf8();
  View view;
  KeyReader keys;
  for (;;) {
    const auto size = FullScreen::size();
    terminal.draw(screen(latest.get(), view, size, unicode), size, color);
    const auto input = terminal.wait(latest.waker(), keys.waits() ? kEscape : kIdle);
    if (auto failed = latest.failure()) return tl::unexpected(std::move(*failed));
    if (input.signal != 0 && input.signal != SIGINT) return core::fail(core::Errc::interrupted, "ended by a signal");
    if (input.ended) return {};
    if (input.resized) terminal.forget();
    if (input.suspend) terminal.suspend();
    if (!obey(keys.read(input.bytes, input.bytes.empty()), view, terminal)) return {};
  }
}

}  // namespace troupe::apps
