#include "transport/exchange/rpc.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "tests/transport/exchange/rpc_over.hpp"
#include "transport/exchange/envelope.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::testing::Bytes;

INSTANTIATE_TEST_SUITE_P(Endpoints, RpcOver, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

core::Buffer vector(std::size_t floats, float first) {
  static core::HostAllocator allocator;
  auto buffer = core::Buffer::allocate(allocator, floats).value();
  for (std::size_t i = 0; i < floats; ++i) buffer.data()[i] = first + static_cast<float>(i) / 1000;
  return buffer;
}

// 5,000 floats in pieces of 1,024 bytes, of which 3 are under way: 20 messages each way, the last one shorter.
TEST_P(RpcOver, VectorsInPiecesArriveWholeAndRounded) {
  meet({.bytes = 1024, .window = 3});
  serve = [](Rpc::Incoming incoming) {
    for (float& x : incoming.vector) x += 1;
    incoming.reply("done");
  };
  const std::size_t calls = 4;
  std::vector<core::Buffer> vectors;
  for (std::size_t i = 0; i < calls; ++i) {
    vectors.push_back(vector(i == 3 ? 0 : 5000, static_cast<float>(i)));
    const auto half = i == 2 ? std::optional(core::HalfKind::bf16) : std::nullopt;
    call(0, {.header = "add", .vector = vectors[i].view(), .lend = Lend::both, .half = half},
         [](const auto& result) { EXPECT_TRUE(result); });
  }
  finish();
  for (std::size_t i = 0; i < 2; ++i) {
    const auto expected = vector(5000, static_cast<float>(i));
    for (std::size_t k = 0; k < 5000; ++k) ASSERT_EQ(vectors[i].data()[k], expected.data()[k] + 1) << i << " " << k;
  }
  const auto there = vector(5000, 2);
  for (std::size_t k = 0; k < 5000; ++k) {
    const auto rounded = [](float x) {
      return core::from_half(core::to_half(x, core::HalfKind::bf16), core::HalfKind::bf16);
    };
    ASSERT_EQ(vectors[2].data()[k], rounded(rounded(there.data()[k]) + 1)) << k;
  }
  EXPECT_TRUE(lost_[0].empty() && lost_[1].empty());
}

TEST_P(RpcOver, CallWhoseVectorIsUnderWayEndsOnceWhenThePeerIsLost) {
  meet({.bytes = 64, .window = 2}, false);  // member 1 takes no message
  auto sent = vector(5000, 1);
  int ended = 0;
  call(0, {.header = "add", .vector = sent.view(), .lend = Lend::both}, [&](const auto& result) {
    ++ended;
    EXPECT_EQ(result.error().code, core::Errc::peer_lost);
  });
  group_->endpoint(1).close();
  finish();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(lost_[0].size(), 1U);
}

TEST_P(RpcOver, CalleeChangesTheVectorAndItComesBack) {
  serve = [](Rpc::Incoming incoming) {
    EXPECT_EQ(incoming.header, "add one");
    for (float& x : incoming.vector) x += 1;
    incoming.reply("done");
  };
  auto mine = vector(4099, 2);
  call(0, {.header = "add one", .vector = mine.view(), .lend = Lend::both},
       [](core::Result<std::string_view> answer) { EXPECT_EQ(answer, "done"); });
  finish();
  const auto wanted = vector(4099, 2);
  for (std::size_t i = 0; i < mine.size(); ++i) ASSERT_EQ(mine.data()[i], wanted.data()[i] + 1);
}

TEST_P(RpcOver, LendsInOneDirectionOnly) {
  auto mine = vector(100, 5);
  serve = [](Rpc::Incoming incoming) {
    EXPECT_EQ(incoming.vector.size(), 100U);
    EXPECT_EQ(incoming.vector[0], incoming.header == "read" ? 5 : 0);
    for (float& x : incoming.vector) x = 7;
    incoming.reply("");
  };
  call(0, {.header = "read", .vector = mine.view(), .lend = Lend::read}, [&](auto answer) {
    EXPECT_TRUE(answer);
    EXPECT_EQ(mine.data()[0], 5);
  });
  finish();
  call(0, {.header = "write", .vector = mine.view(), .lend = Lend::write}, [&](auto answer) {
    EXPECT_TRUE(answer);
    EXPECT_EQ(mine.data()[99], 7);
  });
  finish();
}

TEST_P(RpcOver, CallMayHaveAHeaderOnly) {
  serve = [](Rpc::Incoming incoming) {
    EXPECT_TRUE(incoming.vector.empty());
    incoming.reply(std::string(incoming.header) + "!");
  };
  call(1, {.header = std::string(kMostHeader - 1, 'x')},
       [](auto answer) { EXPECT_EQ(answer, std::string(kMostHeader - 1, 'x') + "!"); });
  finish();
}

TEST_P(RpcOver, RoundsOncePerDirection) {
  serve = [](Rpc::Incoming incoming) { incoming.reply(""); };
  for (const auto half : {core::HalfKind::fp16, core::HalfKind::bf16}) {
    auto mine = vector(777, 1.2345f);
    const auto before = vector(777, 1.2345f);
    const auto sent = group_->bytes_sent(0);
    call(0, {.header = "", .vector = mine.view(), .lend = Lend::both, .half = half},
         [&](auto answer) { EXPECT_TRUE(answer); });
    finish();
    for (std::size_t i = 0; i < mine.size(); ++i)
      ASSERT_EQ(mine.data()[i], core::from_half(core::to_half(before.data()[i], half), half));
    EXPECT_EQ(group_->bytes_sent(0) - sent, 777 * 2 + 256U);
  }
}

/// With Rounding::change the vector is sent exact and the answer is its rounded change: a relative change of 2⁻¹² is still visible.
TEST_P(RpcOver, RoundingChangeRoundsOnlyTheAnswer) {
  serve = [](Rpc::Incoming incoming) {
    EXPECT_EQ(incoming.vector[1], 1.2345F + 1.F / 1000) << "as it was sent";
    for (float& x : incoming.vector) x -= 0x1.23456p-12F;
    incoming.reply("");
  };
  for (const auto half : {core::HalfKind::fp16, core::HalfKind::bf16}) {
    auto mine = vector(777, 1.2345F);
    const auto before = vector(777, 1.2345F);
    const std::uint64_t sent[] = {group_->bytes_sent(0), group_->bytes_sent(1)};
    call(0, {.header = "", .vector = mine.view(), .lend = Lend::both, .half = half, .rounding = core::Rounding::change},
         [&](auto answer) { EXPECT_TRUE(answer); });
    finish();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const float x = before.data()[i];
      const float change = (x - 0x1.23456p-12F) - x;
      ASSERT_EQ(mine.data()[i], x + core::from_half(core::to_half(change, half), half)) << i;
    }
    EXPECT_EQ(group_->bytes_sent(0) - sent[0], 777 * 4 + 256U);
    group_->drive([&] { return group_->bytes_sent(1) - sent[1] >= 777 * 2 + 256U; });  // its send ends later
    EXPECT_EQ(group_->bytes_sent(1) - sent[1], 777 * 2 + 256U);
  }
}

TEST_P(RpcOver, RoundingAnswerAndNoneSendTheVectorExact) {
  serve = [](Rpc::Incoming incoming) {
    EXPECT_EQ(incoming.vector[0], 1.2345F);
    for (float& x : incoming.vector) x *= 3;
    incoming.reply("");
  };
  for (const auto rounding : {core::Rounding::answer, core::Rounding::none}) {
    auto mine = vector(50, 1.2345F);
    call(0,
         {.header = "", .vector = mine.view(), .lend = Lend::both, .half = core::HalfKind::bf16, .rounding = rounding},
         [&](auto answer) { EXPECT_TRUE(answer); });
    finish();
    const float whole = 1.2345F * 3;
    const bool rounded = rounding == core::Rounding::answer;
    EXPECT_EQ(mine.data()[0],
              rounded ? core::from_half(core::to_half(whole, core::HalfKind::bf16), core::HalfKind::bf16) : whole);
  }
}

/// A change that is not finite cannot be sent: the answer then holds the callee's value itself.
TEST_P(RpcOver, AChangeThatCannotBeRoundedIsReplacedByTheVector) {
  serve = [](Rpc::Incoming incoming) {
    for (float& x : incoming.vector) x = 1.5F;
    incoming.reply("");
  };
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 1e38F, -std::numeric_limits<float>::infinity()}) {
    for (const auto half : {core::HalfKind::fp16, core::HalfKind::bf16}) {
      auto mine = vector(50, 1);
      mine.data()[49] = bad;
      call(0,
           {.header = "", .vector = mine.view(), .lend = Lend::both, .half = half, .rounding = core::Rounding::change},
           [&](auto answer) { EXPECT_TRUE(answer); });
      finish();
      const bool has_change = std::isfinite(bad) && half == core::HalfKind::bf16;  // fp16 does not reach 1e38
      for (std::size_t i = 0; i < 49; ++i) ASSERT_NEAR(mine.data()[i], 1.5F, has_change ? 0.01 : 0) << i;
      EXPECT_TRUE(has_change || mine.data()[49] == 1.5F);
    }
  }
}

/// Many calls at once, both ways, answered in another order, some later.
TEST_P(RpcOver, ConcurrentCallsGetTheirOwnAnswers) {
  constexpr std::size_t kCalls = 60;
  std::vector<std::pair<std::string, Rpc::Reply>> held;
  serve = [&](Rpc::Incoming incoming) {
    for (float& x : incoming.vector) x *= 2;
    if (incoming.header.back() % 2 == 0) return incoming.reply(incoming.header);
    held.emplace_back(std::string(incoming.header), incoming.reply);
  };
  std::vector<core::Buffer> data;
  for (std::size_t k = 0; k < kCalls; ++k) data.push_back(vector(10 + 13 * k, static_cast<float>(k)));
  for (std::size_t k = 0; k < kCalls; ++k)
    call(k % 2, {.header = std::to_string(k), .vector = data[k].view(), .lend = Lend::both},
         [k](auto answer) { EXPECT_EQ(answer, std::to_string(k)); });
  group_->drive([&] { return held.size() == kCalls / 2; });
  for (auto& [header, reply] : held) reply(header);
  finish();
  for (std::size_t k = 0; k < kCalls; ++k) EXPECT_EQ(data[k].data()[0], 2 * static_cast<float>(k));
}

TEST_P(RpcOver, ErrorsOfTheCalleeAreAnswers) {
  serve = [](Rpc::Incoming incoming) { incoming.reply(core::fail(core::Errc::diverged, "shard 3 is not finite")); };
  auto mine = vector(10, 1);
  call(0, {.header = "", .vector = mine.view(), .lend = Lend::both}, [](core::Result<std::string_view> answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, core::Errc::diverged);
    EXPECT_EQ(answer.error().message, "shard 3 is not finite");
  });
  finish();
}

/// Vectors of answered calls are used again, and nothing of them reaches another call.
TEST_P(RpcOver, PullFindsZerosAndNotTheFormerContents) {
  auto mine = vector(1000, 7);
  serve = [](Rpc::Incoming incoming) { incoming.reply(""); };
  call(0, {.vector = mine.view(), .lend = Lend::read}, [](auto answer) { EXPECT_TRUE(answer); });
  finish();
  serve = [](Rpc::Incoming incoming) {
    EXPECT_TRUE(std::ranges::all_of(incoming.vector, [](float x) { return x == 0; }));
    incoming.reply(core::fail(core::Errc::corrupt, "no"));
  };
  call(0, {.vector = mine.view(), .lend = Lend::write}, [](auto answer) { EXPECT_FALSE(answer); });
  finish();
  EXPECT_TRUE(std::ranges::all_of(mine.view(), [](float x) { return x == 0; }));
}

/// Padding stays at home: the wire carries the rest, and the callee finds zeros in its place.
TEST_P(RpcOver, PaddingDoesNotTravel) {
  auto marks = vector(100, 1), mine = vector(100, 5);
  for (std::size_t i = 0; i < 100; ++i)
    if (i % 10 >= 7) marks.data()[i] = mine.data()[i] = 0;
  const Packing packing(std::as_const(marks).view());
  std::vector<float> received;
  bool answers = true;
  serve = [&](Rpc::Incoming incoming) {
    EXPECT_EQ(incoming.vector.size(), 70U);
    const auto whole = incoming.padded(packing, 0, 100);
    ASSERT_TRUE(whole);
    received.assign(whole->begin(), whole->end());
    if (incoming.lend == Lend::write)
      std::ranges::copy(mine.view(), whole->begin());
    else
      for (float& x : *whole) x += 1;  // also to the padding
    answers ? incoming.reply("") : incoming.reply(core::fail(core::Errc::corrupt, "no"));
  };
  for (const auto lend : {Lend::both, Lend::both, Lend::write}) {
    const std::vector<float> before(mine.view().begin(), mine.view().end());
    const auto sent = group_->bytes_sent(0);
    call(0, {.vector = mine.view(), .lend = lend, .packing = &packing}, [](auto answer) { EXPECT_TRUE(answer); });
    finish();
    EXPECT_TRUE(lend == Lend::write || received == before);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_TRUE(lend == Lend::both || i % 10 < 7 || received[i] == 0) << i;
      EXPECT_EQ(mine.data()[i], i % 10 < 7 ? before[i] + (lend == Lend::both ? 1 : 0) : 0) << i;
    }
    EXPECT_EQ(group_->bytes_sent(0) - sent, (lend == Lend::both ? 70 * 4 : 0) + 256U);
  }
  answers = false;  // an error leaves the caller's numbers as they were
  const std::vector<float> before(mine.view().begin(), mine.view().end());
  call(0, {.vector = mine.view(), .lend = Lend::both, .packing = &packing}, [](auto answer) { EXPECT_FALSE(answer); });
  finish();
  EXPECT_TRUE(std::ranges::equal(mine.view(), before));
}

TEST_P(RpcOver, LaterCallReusesTheVectorsOfAnEarlierOne) {
  serve = [](Rpc::Incoming incoming) { incoming.reply(""); };
  auto mine = vector(5000, 1);
  std::size_t made[2]{};
  for (int k = 0; k < 20; ++k) {
    for (const auto half : {std::optional<core::HalfKind>{}, std::optional(core::HalfKind::bf16)}) {
      call(0, {.vector = mine.view(), .lend = Lend::both, .half = half}, [](auto answer) { EXPECT_TRUE(answer); });
      finish();
    }
    group_->drive([this] { return group_->operations(1).outstanding() == 1; });  // its next envelope
    for (std::size_t r = 0; r < 2; ++r) {
      if (k == 1) made[r] = calls_[r]->vectors().made();
      EXPECT_TRUE(k <= 1 || calls_[r]->vectors().made() == made[r]) << k;
    }
  }
}

TEST_P(RpcOver, LostPeerEndsAllCallsToIt) {
  serve = [](auto) {};  // never answers
  auto mine = vector(1000, 1), more = vector(1000, 1);
  std::size_t failed = 0;
  for (auto* data : {&mine, &more})
    call(0, {.header = "", .vector = data->view(), .lend = Lend::both}, [&](auto answer) {
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().code, core::Errc::peer_lost);
      EXPECT_NE(answer.error().message.find("rank 1"), std::string::npos) << answer.error().message;
      ++failed;
    });
  group_->poll();
  group_->endpoint(1).close();
  finish();
  EXPECT_EQ(failed, 2U);
  group_->drive([this] { return lost_[0].size() == 1; });
  call(0, {.header = "too late"}, [&](auto answer) { EXPECT_FALSE(answer); });
  finish();
  EXPECT_EQ(lost_[0].size(), 1U);
}

/// A peer that sends an invalid envelope, or asks for more than the limit, is dropped; no other peer is.
TEST_P(RpcOver, NonsenseEndsTheConnection) {
  const auto envelope = transport::make_tag(
      {.run = 1, .exchange = 0, .kind = transport::TagKind::signal, .shard = transport::kMaxShard, .chunk = 0});
  Bytes nonsense = transport::testing::pattern(256, 1);
  group_->operations(1).send(group_->group(1).peers[0], envelope, transport::testing::view(nonsense),
                             [](auto, const auto&) {});
  group_->drive([this] { return !lost_[0].empty(); });
  EXPECT_EQ(lost_[0][0].code, core::Errc::corrupt);
}

TEST_P(RpcOver, AVectorLongerThanAllowedEndsTheConnection) {
  auto mine = vector(kLongestVector + 1, 0);
  call(0, {.header = "", .vector = mine.view(), .lend = Lend::read}, [](auto answer) { EXPECT_FALSE(answer); });
  finish();
  group_->drive([this] { return !lost_[1].empty(); });
  EXPECT_EQ(lost_[1][0].code, core::Errc::corrupt);
}

}  // namespace
}  // namespace troupe::exchange::testing
