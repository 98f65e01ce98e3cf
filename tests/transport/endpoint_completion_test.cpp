// Contract of transport/endpoint.hpp: completions, deadlines, cancel and close. Only a completion returns memory to the caller.
#include <poll.h>

#include <thread>

#include "endpoint_contract.hpp"

namespace troupe::transport::testing {
namespace {

class EndpointCompletion : public EndpointContract {};
INSTANTIATE_TEST_SUITE_P(Endpoints, EndpointCompletion, ::testing::ValuesIn(endpoint_kinds()), kind_name);

constexpr int kCompletionPatienceMs = 60'000;

bool readable(int fd, int timeout_ms) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, timeout_ms) == 1;
}

TEST_P(EndpointCompletion, DescriptorIsReadableWhileCompletionsWait) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  Bytes received(10);
  const Bytes sent = pattern(10, 1);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
  EXPECT_FALSE(readable(b.queue().fd(), 0));
  const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
  EXPECT_TRUE(readable(b.queue().fd(), kCompletionPatienceMs));
  EXPECT_TRUE(readable(b.queue().fd(), 0));  // a check of readability consumes nothing
  b.expect_done(receiving, 10);
  EXPECT_FALSE(readable(b.queue().fd(), 0));
  a.expect_done(sending, 10);
}

TEST_P(EndpointCompletion, ADeadlineEndsTheWaitAndNotTheOperation) {
  core::ManualClock stopped;
  stopped.set(std::chrono::seconds{100});
  Party& a = party("a");
  Party& b = party("b", stopped);
  const Pair pair = join(a, b);
  Bytes received(10);
  const Bytes sent = pattern(10, 1);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
  std::vector<Completion> completions;
  for (const core::Duration at : {core::Duration{0}, core::Duration{std::chrono::seconds{100}}}) {
    const auto waited = b.queue().wait(completions, {at});
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, core::Errc::timeout);
    EXPECT_TRUE(completions.empty());
  }
  a.expect_done(a.send(pair.b_at_a, tag(1), view(sent)), 10);
  b.expect_done(receiving, 10);
  EXPECT_EQ(received, sent);
}

TEST_P(EndpointCompletion, CompletionRemainsAfterTheDeadline) {
  core::ManualClock stopped;
  Party& a = party("a");
  Party& b = party("b", stopped);
  const Pair pair = join(a, b);
  b.receive(pair.a_at_b, tag(1), MemoryView{});
  a.expect_done(a.send(pair.b_at_a, tag(1), ConstMemoryView{}), 0);
  ASSERT_TRUE(readable(b.queue().fd(), kCompletionPatienceMs));
  std::vector<Completion> completions;
  EXPECT_TRUE(b.queue().wait(completions, {core::Duration{0}}));
  EXPECT_EQ(completions.size(), 1u);
}

TEST_P(EndpointCompletion, AWaitIsEndedByAnotherThreadsTransfer) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes sent = pattern(1000, 1);
  Bytes received(1000);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(received));
  std::thread sender([&] { a.expect_done(a.send(pair.b_at_a, tag(1), view(sent)), 1000); });
  b.expect_done(receiving, 1000);
  sender.join();
  EXPECT_EQ(received, sent);
}

TEST_P(EndpointCompletion, CancelledReceiveLeavesItsMessageToTheNextOne) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const Bytes untouched = pattern(10, 1), sent = pattern(10, 2);
  Bytes first = untouched, second(10);
  const OperationId cancelled = b.receive(pair.a_at_b, tag(1), view(first));
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), view(second));
  b->cancel(cancelled);
  b.expect_cancelled(cancelled);
  a.expect_done(a.send(pair.b_at_a, tag(1), view(sent)), 10);
  b.expect_done(receiving, 10);
  EXPECT_EQ(first, untouched);
  EXPECT_EQ(second, sent);
}

TEST_P(EndpointCompletion, ACancelledSendIsNeverDelivered) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  Bytes withdrawn = pattern(10, 1);
  const Bytes sent = pattern(10, 2);
  const OperationId cancelled = a.send(pair.b_at_a, tag(1), view(withdrawn));
  a->cancel(cancelled);
  a.expect_cancelled(cancelled);
  withdrawn.assign(10, std::byte{0});
  const OperationId sending = a.send(pair.b_at_a, tag(1), view(sent));
  Bytes received(10);
  b.expect_done(b.receive(pair.a_at_b, tag(1), view(received)), 10);
  a.expect_done(sending, 10);
  EXPECT_EQ(received, sent);
}

TEST_P(EndpointCompletion, CancelOfCompletedOrUnknownOperationsHasNoEffect) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const OperationId receiving = b.receive(pair.a_at_b, tag(1), MemoryView{});
  a.expect_done(a.send(pair.b_at_a, tag(1), ConstMemoryView{}), 0);
  b.expect_done(receiving, 0);
  b->cancel(receiving);
  b->cancel(OperationId{123456});
  exchange(a, pair.b_at_a, b, pair.a_at_b, tag(2));
  EXPECT_EQ(b.untaken(), 0u);
}

// Cancel races with a delivery in another thread. Either outcome is right, but it must be complete, and the caller owns
// the memory again at the completion (ThreadSanitizer watches the writes below).
TEST_P(EndpointCompletion, CancelRacesWithDelivery) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  for (std::uint32_t round = 0; round < 100; ++round) {
    const Bytes sent = pattern(20'000, round);
    Bytes received(sent.size());
    const OperationId receiving = b.receive(pair.a_at_b, tag(round), view(received));
    std::thread sender([&] { a.expect_done(a.send(pair.b_at_a, tag(round), view(sent)), sent.size()); });
    b->cancel(receiving);
    const Completion c = b.finish(receiving);
    if (c.outcome == Outcome::done) {
      EXPECT_EQ(received, sent);
    } else {
      EXPECT_EQ(c.outcome, Outcome::cancelled);
      received.assign(received.size(), std::byte{0});  // the endpoint no longer uses it
      Bytes again(sent.size());
      b.expect_done(b.receive(pair.a_at_b, tag(round), view(again)), sent.size());
      EXPECT_EQ(again, sent);
      EXPECT_EQ(received, Bytes(sent.size()));
    }
    sender.join();
  }
}

TEST_P(EndpointCompletion, CloseCancelsOutstandingOperations) {
  Party& a = party("a");
  Party& b = party("b");
  Party& c = party("c");
  const Pair ab = join(a, b);
  const Pair ac = join(a, c);
  const Bytes sent = pattern(10, 1);
  Bytes received(10);
  const OperationId sending = a.send(ab.b_at_a, tag(1), view(sent));
  const OperationId receiving = a.receive(ac.b_at_a, tag(2), view(received));
  const OperationId connecting = a->connect(party("d")->address()).value().established;
  a->close();
  EXPECT_EQ(a.untaken(), 3u);  // already there when close() returns
  for (const OperationId operation : {sending, receiving, connecting}) a.expect_cancelled(operation);
  a->close();
  a->cancel(sending);
  EXPECT_EQ(a.untaken(), 0u);
  EXPECT_EQ(a->send(ab.b_at_a, tag(1), view(sent)).error().code, core::Errc::usage);
  EXPECT_EQ(a->receive(ab.b_at_a, tag(1), view(received)).error().code, core::Errc::usage);
  EXPECT_EQ(a->connect(b->address()).error().code, core::Errc::usage);
}

TEST_P(EndpointCompletion, DestructionClosesAndCompletionsOutliveIt) {
  Party& a = party("a");
  Party& b = party("b");
  const Pair pair = join(a, b);
  const OperationId mine = a.receive(pair.b_at_a, tag(1), MemoryView{});
  const OperationId theirs = b.receive(pair.a_at_b, tag(1), MemoryView{});
  a.destroy();
  a.expect_cancelled(mine);
  b.expect_failed(theirs, core::Errc::peer_lost, "/a");
}

}  // namespace
}  // namespace troupe::transport::testing
