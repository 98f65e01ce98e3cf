#include "apps/sweep/sweep_log.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using Kind = SweepEvent::Kind;

const SweepIdentity kIdentity{.fingerprint = "f"};

std::vector<SweepEvent> some_events() {
  return {
      {.kind = Kind::begin, .t = 0.5, .step = {0, 0}, .settings = {{"train.lr", "0.05"}, {"strategy.name", "\"bsp\""}}},
      {.kind = Kind::score, .t = 2, .step = {0, 0}, .result = {.score = 0.75}},
      {.kind = Kind::begin, .t = 2, .step = {0, 1}},
      {.kind = Kind::pause, .t = 2.5},
      {.kind = Kind::score, .t = 3, .step = {0, 1}, .result = {.score = std::nullopt, .last = true}},
      {.kind = Kind::begin, .t = 4, .step = {1, 0}, .settings = {{"train.lr", "9"}}},
      {.kind = Kind::failed, .t = 4, .step = {1, 0}, .error = "no \"such\" thing"}};
}

void expect_equal(const SweepEvent& a, const SweepEvent& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.t, b.t);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.result.score, b.result.score);
  EXPECT_EQ(a.result.last, b.result.last);
  EXPECT_EQ(a.error, b.error);
}

TEST(SweepLog, EventsAreReadBackInTheirOrder) {
  const tests::Folder folder;
  const auto events = some_events();
  for (std::size_t i = 0; i < events.size(); ++i) {  // each in a session of its own
    auto log = SweepLog::open(folder.path(), kIdentity);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(log->before().size(), i);
    ASSERT_TRUE(log->append(events[i]));
  }
  const auto log = SweepLog::open(folder.path(), kIdentity);
  ASSERT_EQ(log->before().size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) expect_equal(log->before()[i], events[i]);
}

/// The last line of a program of the user's own.
TEST(SweepLog, ErrorsNeedNotBeUtf8) {
  const tests::Folder folder;
  {
    auto log = SweepLog::open(folder.path(), kIdentity);
    ASSERT_TRUE(log->append(some_events()[0]));
    ASSERT_TRUE(log->append({.kind = Kind::failed, .step = {0, 0}, .error = "caf\xe9 closed"}));
  }
  const auto read = read_sweep_log(folder.path(), kIdentity);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->back().error, "caf\xef\xbf\xbd closed");
}

/// A kill may leave any part of the last line, and the next session goes on behind the lines that are whole.
TEST(SweepLog, AnIncompleteLastLineIsRemoved) {
  const tests::Folder whole;
  {
    auto log = SweepLog::open(whole.path(), kIdentity);
    for (const auto& event : some_events()) ASSERT_TRUE(log->append(event));
  }
  const auto text = whole.read(kSweepLog);
  for (std::size_t length = 0; length < text.size(); length += 3) {
    const tests::Folder folder;
    folder.write(kSweepLog, text.substr(0, length));
    const auto lines =
        static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n'));
    auto log = SweepLog::open(folder.path(), kIdentity);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(log->before().size(), lines == 0 ? 0 : lines - 1) << length;
    ASSERT_TRUE(log->append(some_events()[1]));
    EXPECT_EQ(SweepLog::open(folder.path(), kIdentity)->before().size(), lines == 0 ? 1 : lines) << length;
  }
}

TEST(SweepLog, ADamagedLineAndAnotherSweepAreRefused) {
  const tests::Folder folder;
  {
    auto log = SweepLog::open(folder.path(), kIdentity);
    ASSERT_TRUE(log->append(some_events()[0]));
  }
  const auto other = SweepLog::open(folder.path(), {.fingerprint = "g"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::Errc::config);
  EXPECT_THAT(other.error().message, HasSubstr("were begun with other ranges"));
  std::ofstream(folder.file(kSweepLog), std::ios::app) << "{}\n";
  const auto damaged = SweepLog::open(folder.path(), kIdentity);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, core::Errc::corrupt);
  EXPECT_THAT(damaged.error().message, HasSubstr(std::string(kSweepLog) + ":3: "));
}

}  // namespace
}  // namespace troupe::apps
