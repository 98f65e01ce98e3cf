#include "apps/client/event_text.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

std::vector<ServerEvent> events_in(std::string_view text, std::size_t piece) {
  EventText reader("7");
  std::vector<ServerEvent> events;
  for (std::size_t at = 0; at < text.size(); at += piece)
    reader.read(text.substr(at, piece), [&](const ServerEvent& event) { events.push_back(event); });
  return events;
}

TEST(EventTextTest, FieldsMakeEventsHoweverTheTextIsCut) {
  constexpr std::string_view kText =
      ": a comment\n\nevent: worker\ndata: {\"a\":1}\nid: 12\n\ndata:x\r\ndata: y\r\n\r\nevent: none\n\nid\n: "
      "\n\ndata\n\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{3}, kText.size()}) {
    const auto events = events_in(kText, piece);
    ASSERT_EQ(events.size(), 3U) << piece;
    EXPECT_EQ(events[0].kind, "worker");
    EXPECT_EQ(events[0].data, "{\"a\":1}");
    EXPECT_EQ(events[0].id, "12");
    EXPECT_EQ(events[1].kind, "message");
    EXPECT_EQ(events[1].data, "x\ny");
    EXPECT_EQ(events[1].id, "12") << "an id stays until there is another one";
    EXPECT_EQ(events[2].kind, "message") << "a kind without data is forgotten";
    EXPECT_EQ(events[2].data, "");
    EXPECT_EQ(events[2].id, "");
  }
}

TEST(EventTextTest, TheIdOfAnEarlierConnectionHolds) { EXPECT_EQ(events_in("data: x\n\n", 4)[0].id, "7"); }

}  // namespace
}  // namespace troupe::apps
