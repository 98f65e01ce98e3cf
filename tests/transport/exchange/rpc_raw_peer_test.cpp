// Calls of a peer that may send anything at any time.
#include <cstring>
#include <deque>

#include "tests/transport/exchange/connected_group.hpp"
#include "transport/exchange/envelope.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::Peer;
using transport::testing::Bytes;

constexpr std::size_t kMost = 10'000;

/// Host memory that counts the bytes in use.
class CountedMemory final : public core::Allocator {
 public:
  [[nodiscard]] core::MemorySpace space() const noexcept override { return memory_.space(); }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    out += bytes;
    return memory_.allocate(bytes);
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override {
    out -= bytes;
    memory_.deallocate(memory, bytes);
  }
  std::size_t out = 0;

 private:
  core::HostAllocator memory_;
};

/// Rank 0 has an Rpc; rank 1 is only an operation queue.
class RpcOfARawPeer : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override {
    group_.emplace(GetParam(), 2);
    calls_ = std::make_unique<Rpc>(
        group_->endpoint(0), group_->operations(0), core::host_kernels(), memory_, kMost, 1,
        [this](Rpc::Incoming incoming) {
          headers_.emplace_back(incoming.header);
          serve(std::move(incoming));
        },
        [this](Peer, const core::Error& error) { lost_.push_back(error); });
    calls_->listen(group_->group(0).peers[1]);
  }
  void TearDown() override { group_.reset(); }

  static transport::Tag tag(transport::TagKind kind, std::uint32_t id) {
    return transport::make_tag({.run = 1, .exchange = id, .kind = kind, .shard = Envelope::kShard, .chunk = 0});
  }
  static Envelope call(std::uint32_t id, Lend lend, std::size_t floats, const std::string& header) {
    Envelope envelope{.lend = lend, .id = id, .floats = floats};
    envelope.set(header);
    return envelope;
  }
  /// Sends `bytes`, which stay alive until the end of the test.
  void send(transport::TagKind kind, std::uint32_t id, Bytes bytes) {
    kept_.push_back(std::move(bytes));
    ++sending_;
    group_->operations(1).send(group_->group(1).peers[0], tag(kind, id), transport::testing::view(kept_.back()),
                               [this](auto, const auto&) { --sending_; });
  }
  void send(const Envelope& envelope) {
    Bytes bytes(sizeof envelope);
    std::memcpy(bytes.data(), &envelope, sizeof envelope);
    send(transport::TagKind::signal, 0, std::move(bytes));
  }
  void send_vector(std::uint32_t id, std::size_t floats) {
    send(transport::TagKind::push, id, Bytes(floats * sizeof(float)));
  }
  /// Receives the answer, and its vector where it has one.
  void take_answer(std::uint32_t id, std::size_t floats) {
    for (const auto& [kind, size] : {std::pair{transport::TagKind::signal, sizeof(Envelope)},
                                     {transport::TagKind::pull, floats * sizeof(float)}}) {
      if (size == 0) continue;
      kept_.emplace_back(size);
      group_->operations(1).receive(group_->group(1).peers[0], tag(kind, kind == transport::TagKind::pull ? id : 0),
                                    transport::testing::view(kept_.back()), [](auto, const auto&) {});
    }
  }
  void drive(const std::function<bool()>& done) { group_->drive(done); }

  CountedMemory memory_;
  std::optional<ConnectedGroup> group_;
  std::unique_ptr<Rpc> calls_;
  std::vector<std::string> headers_;  // of the calls handed over, in order
  std::vector<core::Error> lost_;
  std::size_t sending_ = 0;
  std::deque<Bytes> kept_;
  std::function<void(Rpc::Incoming)> serve = [](auto incoming) { incoming.reply(""); };
};

INSTANTIATE_TEST_SUITE_P(Endpoints, RpcOfARawPeer, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

/// A pull made after a push sees the push applied, however late the push's vector arrives.
TEST_P(RpcOfARawPeer, ACallWaitsForTheVectorOfTheOneBefore) {
  send(call(0, Lend::read, 1000, "push"));
  send(call(1, Lend::write, 1000, "pull"));
  send(call(2, Lend::both, 1000, "push and pull"));
  send(call(3, Lend::nothing, 0, "a header alone"));
  send_vector(2, 1000);
  drive([this] { return sending_ <= 1; });  // the envelopes have arrived; at most the vector is pending
  group_->poll();
  EXPECT_TRUE(headers_.empty());
  send_vector(0, 1000);
  drive([this] { return headers_.size() == 4; });
  EXPECT_EQ(headers_, (std::vector<std::string>{"push", "pull", "push and pull", "a header alone"}));
}

TEST_P(RpcOfARawPeer, CallsBeyondTheRoomForTheirVectorsWaitTheirTurn) {
  std::deque<Rpc::Reply> replies;
  serve = [&](Rpc::Incoming incoming) { replies.push_back(std::move(incoming.reply)); };
  constexpr std::uint32_t kCalls = kMostVectors + 5;
  for (std::uint32_t id = 0; id < kCalls; ++id) send(call(id, Lend::write, kMost, std::to_string(id)));
  drive([&] { return sending_ == 0 && replies.size() == kMostVectors; });
  group_->poll();
  EXPECT_EQ(replies.size(), kMostVectors);
  EXPECT_LE(memory_.out, kMostVectors * kMost * sizeof(float));
  for (std::uint32_t id = 0; id < kCalls; ++id) {
    take_answer(id, kMost);
    drive([&] { return !replies.empty(); });
    replies.front()("");
    replies.pop_front();
    EXPECT_LE(memory_.out, kMostVectors * kMost * sizeof(float));
  }
  EXPECT_EQ(headers_.size(), kCalls);
  EXPECT_TRUE(lost_.empty());
}

TEST_P(RpcOfARawPeer, TooManyOpenCallsEndTheConnection) {
  for (std::uint32_t id = 0; id <= kMostCalls; ++id) send(call(id, Lend::read, kMost, ""));
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
  EXPECT_LE(memory_.out, kMostVectors * kMost * sizeof(float));
}

TEST_P(RpcOfARawPeer, CallsWhoseAnswersAreNotReadStayOpen) {
  for (std::uint32_t id = 0; id <= kMostCalls + 256; ++id) send(call(id, Lend::nothing, 0, ""));
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
}

TEST_P(RpcOfARawPeer, AnAnswerToNothingEndsTheConnection) {
  send({.type = Envelope::Type::answer, .id = 7});
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
}

TEST_P(RpcOfARawPeer, AVectorOfAnotherLengthEndsTheConnection) {
  send(call(0, Lend::read, 1000, ""));
  send_vector(0, 999);
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
  EXPECT_TRUE(headers_.empty());
}

}  // namespace
}  // namespace troupe::exchange::testing
