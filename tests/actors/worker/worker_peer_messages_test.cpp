// A worker's peer messages: their upper limit, and what the worker reports of them while training is paused.
#include <algorithm>
#include <array>
#include <set>

#include "actors/worker/peer_mailbox.hpp"
#include "tests/actors/worker/lone_worker.hpp"

namespace troupe::actors {
namespace {

using strategies::WorkerId;

class WorkerPeerMessages : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kWorkers = 256;
  WorkerPeerMessages()
      : worker_({"strategy.name=gossip", "cluster.workers=" + std::to_string(kWorkers), "model.widths=[1]"}) {
    worker_.begin();
  }
  void write(WorkerId from, double weight) {
    const auto vector = std::make_shared<core::Buffer>(*core::Buffer::allocate(worker_.memory(), worker_.arena_floats));
    std::ranges::fill(vector->view(), 0.F);
    worker_.self->send(worker_.actor, PeerMessage{from, weight}, BorrowedView{vector->view(), vector});
  }
  PeerMessageCounts ask(const PeerMessageCountsOrder& order) {
    PeerMessageCounts said;
    worker_.self->request(worker_.actor, LoneWorker::kPatience, order)
        .receive([&](const PeerMessageCounts& peer_messages) { said = peer_messages; }, LoneWorker::failed());
    return said;
  }
  /// The k-th worker that may write to worker 0.
  static WorkerId writer(std::size_t k) {
    const strategies::PeerGraph graph(kWorkers);
    for (WorkerId w = 0; w < kWorkers; ++w)
      if (graph.may_write(w, 0) && k-- == 0) return w;
    return 0;
  }
  static std::set<WorkerId> writers(const PeerMessageCounts& peer_messages) {
    std::set<WorkerId> writers;
    for (const auto& peer_message : peer_messages.unread) writers.insert(peer_message.from);
    return writers;
  }

  LoneWorker worker_;
};

/// However slow the worker is and however many others write: messages from workers without a slot at it are not taken.
TEST_F(WorkerPeerMessages, UnreadMessagesNeverExceedTheSlots) {
  for (WorkerId from = 1; from < kWorkers; ++from) write(from, 1e-3);
  const auto said = ask({});
  ASSERT_EQ(said.unread.size(), strategies::kPeerSlots);
  const strategies::PeerGraph graph(kWorkers);
  for (const auto from : writers(said)) EXPECT_TRUE(graph.may_write(from, 0)) << from;
  EXPECT_EQ(writers(said).size(), strategies::kPeerSlots);
}

TEST_F(WorkerPeerMessages, NoneIsSentToAWorkerWithoutASlotForIt) {
  const strategies::PeerGraph graph(kWorkers);
  core::HostAllocator memory;  // outlives the mailbox
  PeerMailbox mailbox(3, kWorkers);
  std::vector<float> vector(4);
  for (WorkerId to = 0; to < kWorkers; ++to) {
    const bool sent = mailbox.copy_for(to, vector, core::host_kernels(), memory).owner != nullptr;
    EXPECT_EQ(sent, graph.may_write(3, to)) << to;
    EXPECT_FALSE(mailbox.copy_for(to, vector, core::host_kernels(), memory).owner) << "the first has not been read";
  }
  EXPECT_EQ(mailbox.sent().size(), strategies::kPeerSlots);
}

TEST_F(WorkerPeerMessages, AreCountedAndReportedWithTheirShares) {
  const auto from = writer(0);
  write(from, 0.25);
  const auto said = ask({{{from, 1}}});
  ASSERT_EQ(said.received.size(), 1U);
  EXPECT_EQ(said.received[0].peer, from);
  EXPECT_EQ(said.received[0].peer_messages, 1U);
  ASSERT_EQ(said.unread.size(), 1U);
  EXPECT_EQ(said.unread[0].weight, 0.25);
  EXPECT_EQ(said.weight, 1.0 / kWorkers) << "it has not been read";
  EXPECT_TRUE(said.sent.empty());
}

/// The worker answers when the expected messages have arrived; the coordinator need not ask repeatedly.
TEST_F(WorkerPeerMessages, CountsAreAnsweredWhenTheMessagesHaveArrived) {
  const PeerMessageCountsOrder both{{{writer(0), 1}, {writer(1), 1}}};
  auto answer = worker_.self->request(worker_.actor, LoneWorker::kPatience, both);
  write(writer(0), 0.25);
  write(writer(1), 0.125);
  answer.receive([](const PeerMessageCounts& peer_messages) { EXPECT_EQ(peer_messages.unread.size(), 2U); },
                 LoneWorker::failed());
}

/// ... or after a limited time without them, so that the coordinator sees that the worker lives.
TEST_F(WorkerPeerMessages, WaitForMessagesHasADeadline) {
  const auto said = ask({{{writer(0), 1}}});
  EXPECT_TRUE(said.received.empty());
}

/// The coordinator takes the model at a run's start; its order may be the first message that the worker receives.
TEST(WorkerThatHasNotBegun, CountsItsPeerMessagesOnceItHasBegun) {
  LoneWorker worker({"strategy.name=gossip"});
  auto answer = worker.self->request(worker.actor, LoneWorker::kPatience, PeerMessageCountsOrder{});
  worker.begin();
  answer.receive([](const PeerMessageCounts& peer_messages) { EXPECT_EQ(peer_messages.weight, 0.5); },
                 LoneWorker::failed());
}

TEST_F(WorkerPeerMessages, OfALostWorkerAreNeitherReadNorWaitedFor) {
  const auto lost = writer(0);
  std::vector<WorkerId> members;
  for (WorkerId w = 0; w < kWorkers; ++w)
    if (w != lost) members.push_back(w);
  write(lost, 0.25);
  auto answer = worker_.self->request(worker_.actor, LoneWorker::kPatience, PeerMessageCountsOrder{{{lost, 2}}});
  worker_.self->send(worker_.actor, MembershipNews{1, members});
  write(lost, 0.125);
  answer.receive([](const PeerMessageCounts& peer_messages) { EXPECT_EQ(peer_messages.unread.size(), 1U); },
                 LoneWorker::failed());
  const auto said = ask({{{lost, 2}}});
  ASSERT_EQ(said.unread.size(), 1U) << "what came before the news is there";
  EXPECT_EQ(said.unread[0].weight, 0.25);
}

}  // namespace
}  // namespace troupe::actors
