#include "apps/top/screen.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text/display.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Json worker(int rank, double rate, double wait_s) {
  return {{"worker", rank},        {"steps", 100},
          {"samples", 3200},       {"compute_s", 6},
          {"exchange_s", 2},       {"wait_s", wait_s},
          {"load_s", 0},           {"exchanges", 25},
          {"staleness_mean", 1.5}, {"staleness_max", 4},
          {"samples_per_s", rate}, {"loss", 0.5},
          {"accuracy", 0.75},      {"seconds_since_report", 0.3}};
}

/// `workers` workers and two servers; worker w waits w·0.5 s for worker 0 and 1 s for server 1.
Json state_of(int workers) {
  Json state{{"t", 83},          {"status", "running"}, {"epoch", 1.25},        {"epochs", 3}, {"steps", 400},
             {"samples", 12345}, {"error", nullptr},    {"samples_per_s", 800}, {"servers", 2}};
  auto rows = Json::array(), columns = Json::array(), seconds = Json::array(), all = Json::array();
  for (int w = 0; w < workers; ++w) {
    all.push_back(worker(w, 100 + w, 2));
    rows.push_back(fmt::format("worker {}", w));
    columns.push_back(fmt::format("worker {}", w));
    std::vector<double> row(static_cast<std::size_t>(workers) + 2, 0.0);
    row[0] = w * 0.5;
    row.back() = 1;
    seconds.push_back(row);
  }
  columns.push_back("server 0");
  columns.push_back("server 1");
  state["workers"] = all;
  state["waits"] = {{"rows", rows}, {"columns", columns}, {"seconds", seconds}};
  state["notes"] = {{{"t", 5}, {"level", "info"}, {"text", "saved a checkpoint"}},
                    {{"t", 61}, {"level", "warning"}, {"text", "worker 3 is lost"}}};
  state["evaluations"] = {{{"split", "test"}, {"loss", 0.25}, {"accuracy", 0.9}, {"epoch", 1}}};
  return state;
}

LiveView live_of(Json state) {
  return {.run = "20260102-030405-a", .about = "easgd, lenet on mnist", .problem = {}, .state = std::move(state)};
}

std::vector<std::string> lines(const std::vector<ScreenRow>& rows, std::size_t columns) {
  std::vector<std::string> all;
  for (const auto& row : rows) all.push_back(row.render(columns, false));
  return all;
}

std::string drawn(const LiveView& live, View view, const ScreenSize& size) {
  std::string text;
  for (const auto& line : lines(screen(live, view, size, false), size.columns)) text += line + "\n";
  return text;
}

TEST(ScreenTest, TheHeaderSaysHowTheRunIsDoing) {
  const auto text = drawn(live_of(state_of(4)), {}, {120, 40});
  EXPECT_THAT(text, AllOf(HasSubstr("20260102-030405-a  running  1:23  easgd, lenet on mnist"),
                          HasSubstr("epoch 1.25 of 3"), HasSubstr("400 steps  12,345 samples  800 samples/s"),
                          HasSubstr("training loss 0.5000, accuracy 75.0 %"),
                          HasSubstr("test loss 0.2500, accuracy 90.0 % after epoch 1")));
}

TEST(ScreenTest, AWorkersTimeIsShownInSharesOfItsOwn) {
  // 6 s of computing, 2 s of exchanges, 2 s of waits.
  const auto text = drawn(live_of(state_of(1)), {}, {120, 40});
  EXPECT_THAT(text, HasSubstr("     0       100    60 %     20 %  20 %   0 %    1.5 (4)     0.3 s   0.5000   75.0 %"));
}

TEST(ScreenTest, TheMatrixHasWhoWaitsForWhom) {
  View view;
  view.tab = Tab::waits;
  const auto text = drawn(live_of(state_of(3)), view, {120, 40});
  EXPECT_THAT(text, HasSubstr("waits for        w0      w1      w2      s0      s1     sum"));
  EXPECT_THAT(text, HasSubstr("worker 2        1.0       .       .       .     1.0     2.0"));
}

TEST(ScreenTest, AMatrixThatDoesNotFitIsItsLongestWaits) {
  View view;
  view.tab = Tab::waits;
  auto live = live_of(state_of(500));
  const auto rows = lines(screen(live, view, {100, 24}, false), 100);
  ASSERT_EQ(rows.size(), 24U);
  const auto head = std::ranges::find_if(rows, [](const auto& row) { return row.starts_with("who waits"); });
  ASSERT_NE(head, rows.end());
  EXPECT_THAT(*head, HasSubstr("the longest of 500 x 502"));
  EXPECT_THAT(*(head + 1), AllOf(HasSubstr("worker 499  for worker 0"), HasSubstr("4.2 min"), HasSubstr("100 %")));
  EXPECT_THAT(*(head + 2), HasSubstr("worker 498  for worker 0"));
}

TEST(ScreenTest, AnyScreenIsFilledAndNotExceeded) {
  for (const int workers : {0, 1, 7, 500}) {
    const auto live = live_of(state_of(workers));
    for (const auto tab : {Tab::overview, Tab::workers, Tab::waits, Tab::notes, Tab::members})
      for (const std::size_t columns : {1U, 2U, 17U, 80U, 300U})
        for (const std::size_t height : {1U, 2U, 5U, 24U, 100U})
          for (const bool help : {false, true}) {
            View view;
            view.tab = tab;
            view.help = help;
            view.scroll = 1'000'000;
            const auto rows = lines(screen(live, view, {columns, height}, true), columns);
            ASSERT_EQ(rows.size(), height) << workers << " workers, " << columns << " x " << height;
            for (const auto& row : rows) ASSERT_LE(core::display_columns(row), columns) << row;
          }
  }
}

TEST(ScreenTest, WideCharactersAreNeverCutInHalf) {
  auto live = live_of(state_of(2));
  live.run = "実験-文字列-🎭";
  live.state["notes"] = {{{"t", 1}, {"level", "info"}, {"text", "保存しました 保存しました 保存しました"}}};
  for (std::size_t columns = 1; columns < 60; ++columns) {
    View view;
    for (const auto& row : lines(screen(live, view, {columns, 30}, true), columns)) {
      ASSERT_LE(core::display_columns(row), columns);
      ASSERT_EQ(core::printable(row), row) << "it is UTF-8";
    }
  }
}

TEST(ScreenTest, WhatARunWritesCannotMoveTheCursor) {
  auto live = live_of(state_of(1));
  live.run = "a\x1b[2Jb";
  live.about = "\x1b]0;title\x07";
  live.problem = "\r\nlost";
  live.state["status"] = "\x1b[31m";
  live.state["notes"] = {{{"t", 1}, {"level", "\x1b"}, {"text", "x\x1b[H\xFF"}}};
  live.state["waits"]["rows"][0] = "\x1b[A";
  live.state["members"] = {{{"event", "lost"}, {"worker", 0}, {"node", "\x1b[2J"}, {"reason", "\x1b"}}};
  live.state["workers"][0]["traffic"] = {{"\x1b[H", 0, 4}};
  for (const auto tab : {Tab::overview, Tab::waits, Tab::notes, Tab::members}) {
    View view;
    view.tab = tab;
    EXPECT_THAT(drawn(live, view, {80, 30}), Not(HasSubstr("\x1b")));
  }
}

TEST(ScreenTest, MembersAreThoseOfThisSession) {
  auto state = state_of(4);
  state["members"] = {
      {{"event", "started"}},
      {{"event", "lost"}, {"worker", 0}, {"t", 3}},
      {{"event", "started"}},
      {{"event", "absent"}, {"worker", 1}, {"t", 0}},
      {{"event", "silent"}, {"worker", 2}, {"t", 5}},
      {{"event", "lost"}, {"worker", 3}, {"t", 61}, {"node", "h2:4242"}, {"reason", "its process ended"}},
      {{"event", "joined"}, {"worker", 1}, {"t", 8}}};
  View view;
  view.tab = Tab::members;
  const auto text = drawn(live_of(state), view, {120, 40});
  EXPECT_THAT(text, HasSubstr("3 workers take part, 1 not"));
  EXPECT_THAT(text, HasSubstr("     1  takes part        0:08\n     2  silent            0:05\n"));
  EXPECT_THAT(text, HasSubstr("     3  lost              1:01  h2:4242  its process ended"));
}

TEST(ScreenTest, ALongNoteGoesOnBelowAndIsMarkedWhereItIsCut) {
  auto state = state_of(1);
  std::string text = "the checkpoint";
  for (int i = 0; i < 12; ++i) text += fmt::format(" word-{}", i);
  state["notes"] = {{{"t", 61}, {"level", "warning"}, {"text", text}}};
  View view;
  view.tab = Tab::notes;
  const auto whole_note = drawn(live_of(state), view, {60, 24});
  EXPECT_THAT(whole_note, HasSubstr("     1:01  warning: the checkpoint word-0 word-1 word-2\n           word-3 "));
  EXPECT_THAT(whole_note, HasSubstr(" word-11\n"));
  view.tab = Tab::overview;
  EXPECT_THAT(drawn(live_of(state), view, {60, 24}), HasSubstr("warning: the checkpoint word-0 word-1 word-2 w..."));
}

TEST(ScreenTest, AResumedRunSaysThatMembersNumbersAreOfThisSession) {
  auto state = state_of(2);
  state["members"] = {{{"event", "started"}, {"epoch", 0}}};
  EXPECT_THAT(drawn(live_of(state), {}, {120, 40}), Not(HasSubstr("this session")));
  state["members"].push_back({{"event", "started"}, {"epoch", 1.5}});
  EXPECT_THAT(drawn(live_of(state), {}, {120, 40}), HasSubstr("went on at epoch 1.50: "));
}

TEST(ScreenTest, TimesAreOfTheWholeRun) {
  auto state = state_of(2);
  state["t"] = 3;
  state["wall_s"] = 83;
  state["notes"] = {{{"t", 61}, {"wall_s", 61}, {"level", "info"}, {"text", "of the first session"}},
                    {{"t", 1}, {"wall_s", 81}, {"level", "info"}, {"text", "of the second"}}};
  View view;
  EXPECT_THAT(drawn(live_of(state), view, {120, 40}), HasSubstr("20260102-030405-a  running  1:23  easgd"));
  view.tab = Tab::notes;
  EXPECT_THAT(drawn(live_of(state), view, {120, 40}),
              HasSubstr("     1:01  of the first session\n     1:21  of the second\n"));
}

// Of both workers: 600 + 600 bytes of pushes to two servers, 800,000 of pulls.
TEST(ScreenTest, BytesAreAddedUpByPurpose) {
  auto state = state_of(2);
  state["workers"][0]["traffic"] = {{"push", 0, 400}, {"push", 1, 200}, {"pull", 0, 800'000}};
  state["workers"][1]["traffic"] = {{"push", 0, 600}};
  View view;
  view.tab = Tab::members;
  const auto text = drawn(live_of(state), view, {120, 40});
  EXPECT_THAT(text, HasSubstr("pull            800.0 kB  99.9 %\npush              1.2 kB   0.1 %\n"));
}

TEST(ScreenTest, ScrollingShowsTheLastWorkersAndKeepsTheHeading) {
  View view;
  view.tab = Tab::workers;
  view.press(Key::end);
  const auto rows = lines(screen(live_of(state_of(500)), view, {80, 24}, false), 80);
  EXPECT_THAT(rows[4], HasSubstr("worker")) << "below three rows of the header and the tabs";
  EXPECT_THAT(rows[22], HasSubstr("   499"));
  EXPECT_EQ(view.scroll, 500U - view.page);
  view.press(Key::home);
  EXPECT_THAT(lines(screen(live_of(state_of(500)), view, {80, 24}, false), 80)[5], HasSubstr("     0"));
}

TEST(ScreenTest, SortingPutsTheWorstFirst) {
  View view;
  view.tab = Tab::workers;
  auto state = state_of(3);
  state["workers"][1]["wait_s"] = 50;
  state["workers"][2]["samples_per_s"] = 5;
  view.sort = Sort::wait;
  EXPECT_THAT(lines(screen(live_of(state), view, {80, 24}, false), 80)[5], HasSubstr("     1 "));
  view.sort = Sort::rate;
  EXPECT_THAT(lines(screen(live_of(state), view, {80, 24}, false), 80)[5], HasSubstr("     2 "));
  view.reversed = true;
  EXPECT_THAT(lines(screen(live_of(state), view, {80, 24}, false), 80)[7], HasSubstr("     2 "));
}

TEST(ScreenTest, ValuesThatMakeNoSenseHarmNothing) {
  for (
      const auto* text :
      {"null", "[]", "{}", R"({"workers":3,"waits":[],"notes":{},"evaluations":7,"epoch":"x","epochs":-1})",
       R"({"workers":[1,null,{"worker":-5,"steps":1e300,"wait_s":-1,"compute_s":1e308,"exchange_s":1e308}]})",
       R"({"epoch":1e308,"epochs":1e-308,"t":-1,"status":5,"error":{"message":7}})",
       R"({"waits":{"rows":["a","b"],"columns":["c"],"seconds":[[1,2,3],"x",[4]]}})",
       R"({"members":[3,{"event":7,"worker":-1},{"worker":1e300}],"workers":[{"traffic":[1,[],["push",0,-1e300],["x",0,"y"]]}]})",
       R"({"waits":{"rows":[1],"columns":[2],"seconds":[[-1e300]]},"notes":[1,{"t":"x"}]})"})
    for (const auto tab : {Tab::overview, Tab::workers, Tab::waits, Tab::notes, Tab::members}) {
      View view;
      view.tab = tab;
      EXPECT_EQ(screen(live_of(Json::parse(text)), view, {80, 24}, true).size(), 24U) << text;
    }
  EXPECT_FALSE(whole(live_of(nullptr), 80).empty());
}

TEST(ScreenTest, ALostConnectionIsSaidBesideTheLastState) {
  auto live = live_of(state_of(1));
  live.problem = "10.0.0.1:8080: the connection ended; trying again";
  EXPECT_THAT(drawn(live, {}, {120, 30}), AllOf(HasSubstr("trying again"), HasSubstr("400 steps")));
  live.state = nullptr;
  EXPECT_THAT(drawn(live, {}, {120, 30}), HasSubstr("trying again"));
}

TEST(ScreenTest, APipeGetsAllWorkersAndTheMatrix) {
  std::string text;
  for (const auto& line : lines(whole(live_of(state_of(12)), 200), 200)) text += line + "\n";
  EXPECT_THAT(text, AllOf(HasSubstr("    11 "), HasSubstr("worker 11"), HasSubstr("warning: worker 3 is lost"),
                          HasSubstr("12 workers take part"), HasSubstr("bytes by purpose")));
}

}  // namespace
}  // namespace troupe::apps
