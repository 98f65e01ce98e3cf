#include "service/http/event_queue.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace troupe::service {
namespace {

TEST(EventQueueTest, EventHasTheFormOfTheStandard) {
  EXPECT_EQ(*make_event("epoch", "{}", "17").text, "event: epoch\ndata: {}\nid: 17\n\n");
  EXPECT_EQ(*make_event("run", "{}", "").text, "event: run\ndata: {}\n\n");
}

TEST(EventQueueTest, EventsComeInOrderInPieces) {
  EventQueue queue;
  for (const auto* id : {"1", "2", "3"}) EXPECT_TRUE(queue.push(make_event("e", "x", id)));
  const auto one = make_event("e", "x", "1").text->size();
  EXPECT_EQ(queue.take(2 * one), *make_event("e", "x", "1").text + *make_event("e", "x", "2").text);
  EXPECT_EQ(queue.take(1), *make_event("e", "x", "3").text);
  EXPECT_EQ(queue.take(100), "");
}

TEST(EventQueueTest, SlowClientLosesDroppableEventsFirst) {
  const auto worker = make_event("worker", "x", "1", true), epoch = make_event("epoch", "x", "2");
  EventQueue queue(2 * worker.text->size() + epoch.text->size());
  EXPECT_TRUE(queue.push(worker));
  EXPECT_TRUE(queue.push(epoch));
  EXPECT_TRUE(queue.push(worker));
  EXPECT_TRUE(queue.push(epoch));
  EXPECT_EQ(queue.dropped(), 1U);
  EXPECT_EQ(queue.take(1000), *epoch.text + *worker.text + *epoch.text);
  EXPECT_FALSE(queue.ended());
}

TEST(EventQueueTest, ClientThatWouldLoseOthersIsEndedAndKeepsWhatItHas) {
  const auto epoch = make_event("epoch", "x", "1");
  EventQueue queue(2 * epoch.text->size());
  EXPECT_TRUE(queue.push(epoch));
  EXPECT_TRUE(queue.push(epoch));
  EXPECT_FALSE(queue.push(epoch));
  EXPECT_FALSE(queue.push(epoch));
  EXPECT_FALSE(queue.ended());
  EXPECT_EQ(queue.take(1000), *epoch.text + *epoch.text);
  EXPECT_TRUE(queue.ended());
}

TEST(EventQueueTest, ReadyIsCalledUntilTheClientIsGone) {
  EventQueue queue;
  int calls = 0;
  queue.on_ready([&] { ++calls; });
  EXPECT_TRUE(queue.push(make_event("e", "x", "1")));
  EXPECT_EQ(calls, 1);
  queue.abandon();
  EXPECT_FALSE(queue.push(make_event("e", "x", "2")));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(queue.take(100), "");
}

TEST(EventQueueTest, EventsThatArePushedTogetherWakeOnce) {
  const auto worker = make_event("worker", "x", "1", true), epoch = make_event("epoch", "x", "2");
  EventQueue queue(worker.text->size() + epoch.text->size());
  int calls = 0;
  queue.on_ready([&] { ++calls; });
  EXPECT_TRUE(queue.push(std::vector{worker, epoch, worker}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(queue.take(1000), *epoch.text + *worker.text);
  EXPECT_TRUE(queue.push(std::vector<Event>{}));
  EXPECT_EQ(calls, 1) << "there is nothing to take";
  EXPECT_FALSE(queue.push(std::vector{epoch, epoch, epoch})) << "the last does not fit";
  EXPECT_EQ(queue.take(1000), *epoch.text + *epoch.text);
  EXPECT_TRUE(queue.ended());
}

}  // namespace
}  // namespace troupe::service
