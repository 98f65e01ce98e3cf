// Calls that lend vectors in place. The arenas are those of endpoints that map memory of the host: calls do not see the difference.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/transport/exchange/connected_group.hpp"
#include "transport/exchange/envelope.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::Peer;
using transport::testing::Bytes;

constexpr std::size_t kMostLent = 10'000;
constexpr std::size_t kLent = 4096;
constexpr std::uint64_t kEnvelopes = 2 * sizeof(Envelope);
constexpr std::uint64_t kInPlace = kEnvelopes + sizeof(ArenaPlace);

std::vector<transport::testing::EndpointKind> mapping_kinds() {
  std::vector<transport::testing::EndpointKind> all;
  for (const auto& kind : transport::testing::endpoint_kinds())
    if (!kind.on_device && (kind.name == "inproc" || kind.name == "shm")) all.push_back(kind);
  return all;
}

/// Rank 0 calls, rank 1 serves.
class RpcInPlace : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override { meet(); }
  void TearDown() override { group_.reset(); }
  /// `maps`: rank 1 has arenas, too, and so maps those of others.
  void meet(bool maps = true) {
    group_.reset();
    for (auto& lost : lost_) lost.clear();
    group_.emplace(GetParam(), 2);
    for (std::size_t r = 0; r < 2; ++r) {
      calls_[r] = std::make_unique<Rpc>(
          group_->endpoint(r), group_->operations(r), core::host_kernels(), allocator_, kMostLent, 1,
          [this](Rpc::Incoming incoming) { serve(std::move(incoming)); },
          [this, r](Peer, const core::Error& error) { lost_[r].push_back(error); }, PieceOptions{},
          r == 0 || maps ? &group_->arenas(r) : nullptr);
      calls_[r]->listen(group_->group(r).peers[1 - r]);
    }
  }
  [[nodiscard]] core::Result<void> offer() {
    const auto before = sent();
    std::optional<core::Result<void>> taken;
    calls_[0]->offer(group_->group(0).peers[1], [&](const core::Result<void>& result) { taken = result; });
    group_->drive([&] { return taken.has_value() && sent() - before >= kEnvelopes; });
    return taken.value();
  }
  [[nodiscard]] std::uint64_t sent() const { return group_->bytes_sent(0) + group_->bytes_sent(1); }
  /// Ends when the call was answered, and its messages have carried so much payload: a send may end after its receive.
  void call(Call call, std::optional<std::uint64_t> payload = {}) {
    const auto before = sent();
    bool answered = false;
    calls_[0]->call(group_->group(0).peers[1], std::move(call), [&](const auto& result) {
      answered = true;
      result_ = result ? std::string(*result) : result.error().message;
    });
    group_->drive([&] { return answered && (!payload || sent() - before >= *payload); });
    if (payload) {
      EXPECT_EQ(sent() - before, *payload);
    }
  }
  [[nodiscard]] core::Buffer vector(float first = 1) {
    auto buffer = core::Buffer::allocate(group_->arenas(0), kLent).value();
    for (std::size_t i = 0; i < kLent; ++i) buffer.data()[i] = first + static_cast<float>(i);
    return buffer;
  }

  core::HostAllocator allocator_;
  std::optional<ConnectedGroup> group_;
  std::unique_ptr<Rpc> calls_[2];
  std::vector<core::Error> lost_[2];
  std::string result_;
  std::function<void(Rpc::Incoming)> serve = [](Rpc::Incoming incoming) {
    for (float& x : incoming.vector) x += 1;
    incoming.reply("done");
  };
};

INSTANTIATE_TEST_SUITE_P(Endpoints, RpcInPlace, ::testing::ValuesIn(mapping_kinds()), transport::testing::kind_name);

TEST_P(RpcInPlace, TheCalleeHasTheCallersVectorItself) {
  ASSERT_TRUE(offer());
  auto mine = vector();
  core::Span seen;
  serve = [&](Rpc::Incoming incoming) {
    seen = incoming.vector;
    incoming.vector[7] = 42;
    EXPECT_EQ(mine.data()[7], 42) << "before the answer";
    incoming.reply("done");
  };
  call({.header = "x", .vector = mine.view(), .lend = Lend::both}, kInPlace);  // no float travels
  EXPECT_EQ(result_, "done");
  EXPECT_EQ(seen.size(), kLent);
}

TEST_P(RpcInPlace, EveryWayToLendLeavesTheNumbersOfMessages) {
  for (const auto lend : {Lend::read, Lend::write, Lend::both}) {
    SCOPED_TRACE(static_cast<int>(lend));
    std::vector<float> ends[2];
    for (const bool in_place : {false, true}) {
      meet();
      if (in_place) {
        ASSERT_TRUE(offer());
      }
      auto mine = vector();
      serve = [&](Rpc::Incoming incoming) {
        if (lend != Lend::write) {
          EXPECT_EQ(incoming.vector[10], 11);
        }
        if (lend != Lend::read)
          for (std::size_t i = 0; i < incoming.vector.size(); ++i) incoming.vector[i] = static_cast<float>(i) / 3;
        incoming.reply("done");
      };
      call({.header = "x", .vector = mine.view(), .lend = lend});
      ends[in_place ? 1 : 0].assign(mine.data(), mine.data() + kLent);
    }
    EXPECT_EQ(ends[0], ends[1]);
  }
}

TEST_P(RpcInPlace, WhatIsRoundedPackedOrElsewhereTravels) {
  ASSERT_TRUE(offer());
  auto mine = vector();
  call({.header = "x", .vector = mine.view(), .lend = Lend::read, .half = core::HalfKind::bf16},
       kEnvelopes + kLent * 2);
  call({.header = "x",
        .vector = mine.view(),
        .lend = Lend::read,
        .half = core::HalfKind::bf16,
        .rounding = core::Rounding::none},
       kInPlace);  // the format is not used
  auto elsewhere = core::Buffer::allocate(allocator_, kLent).value();
  call({.header = "x", .vector = elsewhere.view(), .lend = Lend::read}, kEnvelopes + kLent * 4);
  const std::vector<float> marks(kLent, 1.F);
  const Packing packing(marks);
  call({.header = "x", .vector = mine.view(), .lend = Lend::read, .packing = &packing}, kEnvelopes + kLent * 4);
  const auto unaligned = mine.view().subspan(1, 100);
  call({.header = "x", .vector = unaligned, .lend = Lend::read}, kEnvelopes + 400);
  call({.header = "x", .vector = mine.view().first(0), .lend = Lend::both}, kEnvelopes);
}

TEST_P(RpcInPlace, WithoutAnOfferOrWithARefusedOneVectorsTravel) {
  auto mine = vector();
  call({.header = "x", .vector = mine.view(), .lend = Lend::both}, kEnvelopes + 2 * kLent * 4);
  mine = {};
  meet(false);
  const auto refused = offer();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_NE(refused.error().message.find("shares no device memory"), std::string::npos) << refused.error().message;
  mine = vector();
  call({.header = "x", .vector = mine.view(), .lend = Lend::both}, kEnvelopes + 2 * kLent * 4);
  EXPECT_EQ(result_, "done");
  EXPECT_EQ(mine.data()[0], 2);
  EXPECT_TRUE(lost_[0].empty() && lost_[1].empty());
}

TEST_P(RpcInPlace, CallsKeepTheirOrder) {
  ASSERT_TRUE(offer());
  std::string order;
  serve = [&](Rpc::Incoming incoming) {
    order += incoming.header;
    incoming.reply("");
  };
  auto mine = vector();
  auto elsewhere = core::Buffer::allocate(allocator_, kMostLent).value();
  std::size_t open = 0;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    ++open;
    const auto lent = std::string_view("acf").find(*name) == std::string_view::npos ? elsewhere.view() : mine.view();
    calls_[0]->call(group_->group(0).peers[1],
                    {.header = name, .vector = lent, .lend = *name == 'e' ? Lend::nothing : Lend::read},
                    [&](const auto&) { --open; });
  }
  group_->drive([&] { return open == 0; });
  EXPECT_EQ(order, "abcdef");
}

TEST_P(RpcInPlace, AnErrorEndsTheCallAndTheVectorIsTheCallersAgain) {
  ASSERT_TRUE(offer());
  std::vector<Rpc::Reply> replies;
  serve = [&](Rpc::Incoming incoming) { replies.push_back(incoming.reply); };
  auto mine = vector();
  bool ended = false;
  calls_[0]->call(group_->group(0).peers[1], {.header = "x", .vector = mine.view(), .lend = Lend::both},
                  [&](const auto& result) {
                    ended = true;
                    EXPECT_EQ(result.error().code, core::Errc::data);
                  });
  group_->drive([&] { return !replies.empty(); });
  replies.front()(core::fail(core::Errc::data, "no"));
  group_->drive([&] { return ended; });
  EXPECT_EQ(mine.data()[0], 1);
}

// The callee's member may use the vector after its owner has ended.
TEST_P(RpcInPlace, ALentVectorOutlivesItsOwner) {
  ASSERT_TRUE(offer());
  std::optional<Rpc::Incoming> kept;
  std::shared_ptr<const void> owner;
  serve = [&](Rpc::Incoming incoming) {
    owner = incoming.owner();
    kept = std::move(incoming);
  };
  {
    auto mine = vector();
    calls_[0]->call(group_->group(0).peers[1], {.header = "x", .vector = mine.view(), .lend = Lend::both},
                    [](const auto& result) { EXPECT_EQ(result.error().code, core::Errc::peer_lost); });
    group_->drive([&] { return kept.has_value(); });
    group_->endpoint(0).close();
    group_->drive([&] { return lost_[1].size() == 1; });
  }
  EXPECT_EQ(kept->vector[10], 11);
  kept->vector[10] = 5;
  kept->reply("too late");
}

/// Envelopes that the peer has no right to send.
class RpcInPlaceOfARawPeer : public RpcInPlace {
 protected:
  void send(transport::TagKind kind, std::uint32_t id, Bytes bytes) {
    kept_.push_back(std::move(bytes));
    group_->operations(0).send(
        group_->group(0).peers[1],
        transport::make_tag({.run = 1, .exchange = id, .kind = kind, .shard = Envelope::kShard, .chunk = 0}),
        transport::testing::view(kept_.back()), [](auto, const auto&) {});
  }
  template <class T>
  void send(transport::TagKind kind, std::uint32_t id, const T& value) {
    Bytes bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    send(kind, id, std::move(bytes));
  }
  void expect_given_up(const char* why) {
    group_->drive([&] { return lost_[1].size() == 1; });
    EXPECT_NE(lost_[1].front().message.find(why), std::string::npos) << lost_[1].front().message;
  }
  std::deque<Bytes> kept_;
};

INSTANTIATE_TEST_SUITE_P(Endpoints, RpcInPlaceOfARawPeer, ::testing::ValuesIn(mapping_kinds()),
                         transport::testing::kind_name);

TEST_P(RpcInPlaceOfARawPeer, PlacesBeforeAnOfferEndTheConnection) {
  send(transport::TagKind::signal, 0, Envelope{.lend = Lend::read, .id = 5, .floats = 64, .mapped = 1});
  expect_given_up("in place");
}

// The refusal comes back to a member that has not called, and ends the connection there: so it has come.
TEST_P(RpcInPlaceOfARawPeer, OffersOfArenasThatThereAreNotAreRefused) {
  Envelope envelope{.type = Envelope::Type::offer, .id = 1};
  ArenaPlace place{.arena_floats = 128, .offset = 0};
  std::ranges::copy(std::string_view("no such arena"), place.key.begin());
  envelope.set({reinterpret_cast<const char*>(&place), sizeof place});
  send(transport::TagKind::signal, 0, envelope);
  group_->drive([&] { return lost_[0].size() == 1; });
  EXPECT_NE(lost_[0].front().message.find("a call that was not made"), std::string::npos) << lost_[0].front().message;
}

TEST_P(RpcInPlaceOfARawPeer, OffersWithoutAPlaceEndTheConnection) {
  Envelope envelope{.type = Envelope::Type::offer, .id = 1};
  envelope.set("short");
  send(transport::TagKind::signal, 0, envelope);
  expect_given_up("invalid envelope");
}

TEST_P(RpcInPlaceOfARawPeer, PlacesOutsideAnArenaAreErrorsOfTheCall) {
  ASSERT_TRUE(offer());
  auto mine = vector();
  auto place = group_->arenas(0).place_of(mine.view());
  place.offset = kLent - 16;
  bool served = false;
  serve = [&](Rpc::Incoming incoming) {
    served = incoming.header == "lie";
    incoming.reply("done");
  };
  Envelope envelope{.lend = Lend::both, .id = 77, .floats = kLent, .mapped = 1};
  envelope.set("lie");
  send(transport::TagKind::signal, 0, envelope);
  send(transport::TagKind::push, 77, place);
  // Rank 0 has made no call 77: the error that comes back for it ends the connection there.
  group_->drive([&] { return lost_[0].size() == 1; });
  EXPECT_FALSE(served);
}

}  // namespace
}  // namespace troupe::exchange::testing
