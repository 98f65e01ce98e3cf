#include "apps/progress_line.hpp"

#include <gtest/gtest.h>

#include "tests/experiment/report/screen.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

using report::Capture;
using report::Screen;
using Mode = ProgressLine::Mode;
using namespace std::chrono_literals;

constexpr ProgressLine::Times kSoon{.first = 1ms, .every = 1ms, .first_plain = 1ms, .every_plain = 1ms};
constexpr ProgressLine::Times kNever{.first = 1h, .every = 1h, .first_plain = 1h, .every_plain = 1h};

std::string text(const ProgressState& state, std::size_t columns) {
  return progress_line(state, columns, false).fitted(columns).render(500, false);
}

TEST(ProgressLineTest, HasABarWhereTheShareIsKnown) {
  const ProgressState half{.what = "replay", .done = 0.5, .text = "segment 1 of 2", .elapsed_s = 10};
  EXPECT_EQ(text(half, 60), "replay  =========---------   50 %  segment 1 of 2  0:10 left");
  EXPECT_EQ(text(half, 32), "replay  ====----   50 %");
  EXPECT_EQ(text({.what = "checking", .elapsed_s = 75}, 60), "checking  1:15");
}

/// The stream is looked at when the line's thread has ended.
TEST(ProgressLineTest, ATerminalHasOneLineThatVanishes) {
  Capture out;
  {
    ProgressLine line("replay", Mode::live, kSoon, out.stream());
    line.show(0.25);
    EXPECT_TRUE(tests::eventually([&] { return line.drawn() > 2; }));
  }
  const Screen screen(out.text());
  EXPECT_TRUE(screen.shown().empty()) << out.text();
  EXPECT_TRUE(screen.cursor_visible);
}

/// Ctrl-C ends most commands where they are: nobody would show the cursor again.
TEST(ProgressLineTest, TheCursorStaysVisible) {
  Capture out;
  {
    ProgressLine line("replay", Mode::live, kSoon, out.stream());
    EXPECT_TRUE(tests::eventually([&] { return line.drawn() > 1; }));
  }
  EXPECT_EQ(out.text().find("\x1b[?25l"), std::string::npos) << out.text();
}

/// As a closed terminal: the thread that draws must not end the process.
TEST(ProgressLineTest, LinesThatCannotBeWrittenAreDropped) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);  // as standard error
  for (const auto mode : {Mode::live, Mode::plain}) {
    ProgressLine line("replay", mode, kSoon, full);
    EXPECT_TRUE(tests::eventually([&] { return line.drawn() > 1; }));
  }
  std::fclose(full);
}

TEST(ProgressLineTest, ShortWorkPrintsNothing) {
  for (const auto mode : {Mode::live, Mode::plain, Mode::quiet}) {
    Capture out;
    {
      ProgressLine line("replay", mode, kNever, out.stream());
      line.show(0.5, "soon done");
    }
    EXPECT_EQ(out.text(), "");
  }
}

TEST(ProgressLineTest, LinesElsewhereHaveNoEscapeCodes) {
  Capture out;
  {
    ProgressLine line("replay", Mode::plain, kSoon, out.stream());
    line.show(0.5);
    EXPECT_TRUE(tests::eventually([&] { return line.drawn() > 0; }));
  }
  EXPECT_EQ(out.text().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace troupe::apps
