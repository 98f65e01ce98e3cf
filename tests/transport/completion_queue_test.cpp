#include "transport/completion_queue.hpp"

#include <chrono>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "transport/inproc/endpoint.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::transport {
namespace {

Completion completion(std::uint64_t operation) { return {.operation = OperationId{operation}, .bytes = operation}; }

TEST(CompletionQueue, GivesEverythingOnceInOrder) {
  const core::ManualClock clock;
  const auto queue = CompletionQueue::create(clock).value();
  std::vector<Completion> out;
  EXPECT_EQ(queue->poll(out), 0u);
  for (std::uint64_t i = 0; i < 5; ++i) queue->push(completion(i));
  EXPECT_EQ(queue->poll(out), 5u);
  queue->push(completion(5));
  EXPECT_EQ(queue->poll(out), 1u);  // appends
  ASSERT_EQ(out.size(), 6u);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(out[i].operation, OperationId{i});
  EXPECT_EQ(queue->poll(out), 0u);
}

TEST(CompletionQueue, WakesOncePerTransitionFromEmpty) {
  const core::ManualClock clock;
  int woken = 0;
  const auto queue = CompletionQueue::create(clock, [&] { ++woken; }).value();
  std::vector<Completion> out;
  queue->push(completion(1));
  queue->push(completion(2));
  EXPECT_EQ(woken, 1);
  queue->poll(out);
  EXPECT_EQ(woken, 1);
  queue->push(completion(3));
  EXPECT_EQ(woken, 2);
}

TEST(CompletionQueue, OperationIdsAreNeverReused) {
  const core::ManualClock clock;
  const auto queue = CompletionQueue::create(clock).value();
  std::vector<std::vector<OperationId>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& mine : drawn)
    threads.emplace_back([&queue, &mine] {
      for (int i = 0; i < 1000; ++i) mine.push_back(queue->next_operation());
    });
  for (std::thread& t : threads) t.join();
  std::set<OperationId> all;
  for (const auto& mine : drawn) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4000u);
}

TEST(CompletionQueue, ManyThreadsPushAndManyWait) {
  const core::SteadyClock clock;
  const auto queue = CompletionQueue::create(clock).value();
  constexpr std::uint64_t kEach = 500;
  std::atomic<std::uint64_t> taken{0}, sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 1; i <= kEach; ++i) queue->push(completion(i));
    });
    threads.emplace_back([&] {
      while (taken < 2 * kEach) {
        std::vector<Completion> out;
        // The other waiter may take the last completions, so this thread looks again after a moment.
        (void)queue->wait(out, after(clock, std::chrono::milliseconds{1}));
        for (const Completion& c : out) sum += c.bytes;
        taken += out.size();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(taken, 2 * kEach);
  EXPECT_EQ(sum, kEach * (kEach + 1));
}

TEST(CompletionQueue, EndpointsShareOne) {
  const core::SteadyClock clock;
  EndpointOptions options{.completions = CompletionQueue::create(clock).value(), .hub = make_inproc_hub()};
  const auto a = make_endpoint("inproc", options).value();
  const auto b = make_endpoint("inproc", options).value();
  const Connection at_a = a->connect(b->address()).value();
  const Connection at_b = b->connect(a->address()).value();
  const Tag tag = make_tag({});
  const OperationId receiving = b->receive(at_b.peer, tag, {}).value();
  const OperationId sending = a->send(at_a.peer, tag, {}).value().value();
  std::vector<Completion> out;
  std::set<OperationId> completed;
  options.completions->poll(out);
  for (const Completion& c : out) completed.insert(c.operation);
  EXPECT_EQ(completed, (std::set<OperationId>{at_a.established, at_b.established, receiving, sending}));
}

}  // namespace
}  // namespace troupe::transport
