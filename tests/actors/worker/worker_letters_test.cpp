// A worker's letters: how many it may have, and what it says of them while training stands still.
#include <algorithm>
#include <array>
#include <set>

#include "actors/worker/peer_mail.hpp"
#include "tests/actors/worker/lone_worker.hpp"

namespace troupe::actors {
namespace {

using strategies::WorkerId;

class WorkerLetters : public testing::Test {
 protected:
  static constexpr std::uint32_t kWorkers = 256;
  WorkerLetters()
      : worker_({"strategy.name=gossip", "cluster.workers=" + std::to_string(kWorkers), "model.widths=[1]"}) {
    worker_.begin();
  }
  void write(WorkerId from, double weight) {
    const auto vector = std::make_shared<core::Buffer>(*core::Buffer::allocate(worker_.memory(), worker_.arena_floats));
    std::ranges::fill(vector->view(), 0.F);
    worker_.self->send(worker_.actor, PeerLetter{from, weight}, Lent{vector->view(), vector});
  }
  Letters ask(const LettersOrder& order) {
    Letters said;
    worker_.self->request(worker_.actor, LoneWorker::kPatience, order)
        .receive([&](const Letters& letters) { said = letters; }, LoneWorker::failed());
    return said;
  }
  /// The k-th that may write to the worker.
  static WorkerId writer(std::size_t k) {
    const strategies::PeerGraph graph(kWorkers);
    for (WorkerId w = 0; w < kWorkers; ++w)
      if (graph.may_write(w, 0) && k-- == 0) return w;
    return 0;
  }
  static std::set<WorkerId> writers(const Letters& letters) {
    std::set<WorkerId> writers;
    for (const auto& letter : letters.unread) writers.insert(letter.from);
    return writers;
  }

  LoneWorker worker_;
};

/// However slow it is, and however many write: those who have no slot there are not read, and do not write.
TEST_F(WorkerLetters, AreNeverMoreThanSlots) {
  for (WorkerId from = 1; from < kWorkers; ++from) write(from, 1e-3);
  const auto said = ask({});
  ASSERT_EQ(said.unread.size(), strategies::kPeerSlots);
  const strategies::PeerGraph graph(kWorkers);
  for (const auto from : writers(said)) EXPECT_TRUE(graph.may_write(from, 0)) << from;
  EXPECT_EQ(writers(said).size(), strategies::kPeerSlots);
}

TEST_F(WorkerLetters, AreNotWrittenToOneWhoHasNoSlotForThem) {
  const strategies::PeerGraph graph(kWorkers);
  PeerPostbox postbox(3, kWorkers);
  core::HostAllocator memory;
  std::vector<float> vector(4);
  for (WorkerId to = 0; to < kWorkers; ++to) {
    const bool sent = postbox.copy_for(to, vector, core::host_kernels(), memory).owner != nullptr;
    EXPECT_EQ(sent, graph.may_write(3, to)) << to;
    EXPECT_FALSE(postbox.copy_for(to, vector, core::host_kernels(), memory).owner) << "the first has not been read";
  }
  EXPECT_EQ(postbox.sent().size(), strategies::kPeerSlots);
}

TEST_F(WorkerLetters, AreCountedAndToldWithTheirShares) {
  const auto from = writer(0);
  write(from, 0.25);
  const auto said = ask({{{from, 1}}});
  ASSERT_EQ(said.received.size(), 1U);
  EXPECT_EQ(said.received[0].peer, from);
  EXPECT_EQ(said.received[0].letters, 1U);
  ASSERT_EQ(said.unread.size(), 1U);
  EXPECT_EQ(said.unread[0].weight, 0.25);
  EXPECT_EQ(said.weight, 1.0 / kWorkers) << "it has not been read";
  EXPECT_TRUE(said.sent.empty());
}

/// The answer waits for what is on its way; the coordinator need not ask again and again.
TEST_F(WorkerLetters, AreWaitedFor) {
  const LettersOrder both{{{writer(0), 1}, {writer(1), 1}}};
  auto answer = worker_.self->request(worker_.actor, LoneWorker::kPatience, both);
  write(writer(0), 0.25);
  write(writer(1), 0.125);
  answer.receive([](const Letters& letters) { EXPECT_EQ(letters.unread.size(), 2U); }, LoneWorker::failed());
}

/// ... and is given at last without it, so that whoever asks hears that the worker lives.
TEST_F(WorkerLetters, AreNotWaitedForAtAnyLength) {
  const auto said = ask({{{writer(0), 1}}});
  EXPECT_TRUE(said.received.empty());
}

/// The coordinator looks at the model of a run that begins, and its words may be the first that come.
TEST(WorkerThatHasNotBegun, SaysItsLettersWhenItHas) {
  LoneWorker worker({"strategy.name=gossip"});
  auto answer = worker.self->request(worker.actor, LoneWorker::kPatience, LettersOrder{});
  worker.begin();
  answer.receive([](const Letters& letters) { EXPECT_EQ(letters.weight, 0.5); }, LoneWorker::failed());
}

TEST_F(WorkerLetters, OfOneWhoIsLostAreNeitherReadNorWaitedFor) {
  const auto lost = writer(0);
  std::vector<WorkerId> members;
  for (WorkerId w = 0; w < kWorkers; ++w)
    if (w != lost) members.push_back(w);
  write(lost, 0.25);
  auto answer = worker_.self->request(worker_.actor, LoneWorker::kPatience, LettersOrder{{{lost, 2}}});
  worker_.self->send(worker_.actor, MembershipNews{1, members});
  write(lost, 0.125);
  answer.receive([](const Letters& letters) { EXPECT_EQ(letters.unread.size(), 1U); }, LoneWorker::failed());
  const auto said = ask({{{lost, 2}}});
  ASSERT_EQ(said.unread.size(), 1U) << "what came before the news is there";
  EXPECT_EQ(said.unread[0].weight, 0.25);
}

}  // namespace
}  // namespace troupe::actors
