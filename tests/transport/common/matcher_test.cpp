#include "transport/common/matcher.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

struct Item {
  OperationId operation;
};
Item item(std::uint64_t n) { return {OperationId{n}}; }
constexpr Tag kA{1};
constexpr Tag kB{2};

TEST(Matcher, OldestOfTheSameTagFirst) {
  Matcher<Item, Item> matcher;
  EXPECT_FALSE(matcher.arrive(kA, item(1)));
  EXPECT_FALSE(matcher.arrive(kB, item(2)));
  EXPECT_FALSE(matcher.arrive(kA, item(3)));
  EXPECT_EQ(matcher.waiting_messages(), 3u);
  EXPECT_EQ(matcher.post(kA, item(10))->operation, OperationId{1});
  EXPECT_EQ(matcher.post(kA, item(11))->operation, OperationId{3});
  EXPECT_FALSE(matcher.post(kA, item(12)));
  EXPECT_FALSE(matcher.post(kA, item(13)));
  EXPECT_EQ(matcher.arrive(kA, item(4))->operation, OperationId{12});
  EXPECT_EQ(matcher.waiting_messages(), 1u);
  EXPECT_EQ(matcher.waiting_receives(), 1u);
}

TEST(Matcher, RemovesOnlyWaitingOperations) {
  Matcher<Item, Item> matcher;
  for (const std::uint64_t n : {1u, 2u, 3u}) EXPECT_FALSE(matcher.post(kA, item(n)));
  EXPECT_FALSE(matcher.remove_receive(kB, OperationId{2}));
  EXPECT_FALSE(matcher.remove_message(kA, OperationId{2}));
  EXPECT_EQ(matcher.remove_receive(kA, OperationId{2})->operation, OperationId{2});
  EXPECT_FALSE(matcher.remove_receive(kA, OperationId{2}));
  EXPECT_EQ(matcher.arrive(kA, item(10))->operation, OperationId{1});
  EXPECT_EQ(matcher.arrive(kA, item(11))->operation, OperationId{3});
}

TEST(Matcher, DrainGivesEverythingOnce) {
  Matcher<Item, Item> matcher;
  EXPECT_FALSE(matcher.post(kB, item(1)));
  EXPECT_FALSE(matcher.post(kB, item(2)));
  EXPECT_FALSE(matcher.arrive(kA, item(3)));
  std::vector<OperationId> receives, messages;
  const auto drain = [&] {
    matcher.drain([&](Tag, const Item& i) { receives.push_back(i.operation); },
                  [&](Tag, const Item& i) { messages.push_back(i.operation); });
  };
  drain();
  drain();
  EXPECT_EQ(receives, (std::vector{OperationId{1}, OperationId{2}}));
  EXPECT_EQ(messages, (std::vector{OperationId{3}}));
}

}  // namespace
}  // namespace troupe::transport
