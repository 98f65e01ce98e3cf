#include "transport/exchange/calls.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "transport/exchange/envelope.hpp"
#include "tests/transport/exchange/company.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::Peer;
using transport::testing::Bytes;

constexpr std::size_t kMost = 10'000;

/// Two members with calls; what comes in to the second is answered by `serve`.
class CallsOf : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override {
    company_.emplace(GetParam(), 2);
    for (std::size_t r = 0; r < 2; ++r) {
      calls_[r] = std::make_unique<Calls>(
          company_->endpoint(r), company_->courier(r), core::host_kernels(), allocator_, kMost, 1,
          [this](Calls::Incoming incoming) { serve(std::move(incoming)); },
          [this, r](Peer, const core::Error& error) { lost_[r].push_back(error); });
      calls_[r]->listen(company_->group(r).peers[1 - r]);
    }
  }
  void TearDown() override { company_.reset(); }

  void call(std::size_t from, Call call, std::function<void(core::Result<std::string>)> answered) {
    ++open_;
    calls_[from]->call(company_->group(from).peers[1 - from], std::move(call), [this, answered](auto result) {
      --open_;
      answered(std::move(result));
    });
  }
  void finish() {
    company_->drive([this] { return open_ == 0; });
  }

  core::HostAllocator allocator_;
  std::optional<Company> company_;
  std::unique_ptr<Calls> calls_[2];
  std::vector<core::Error> lost_[2];
  std::size_t open_ = 0;
  std::function<void(Calls::Incoming)> serve = [](auto) { ADD_FAILURE() << "nobody called"; };
};

INSTANTIATE_TEST_SUITE_P(Endpoints, CallsOf, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

core::Buffer vector(std::size_t floats, float first) {
  static core::HostAllocator allocator;
  auto buffer = core::Buffer::allocate(allocator, floats).value();
  for (std::size_t i = 0; i < floats; ++i) buffer.data()[i] = first + static_cast<float>(i) / 1000;
  return buffer;
}

TEST_P(CallsOf, TheCalleeWorksOnTheVectorAndItComesBack) {
  serve = [](Calls::Incoming incoming) {
    EXPECT_EQ(incoming.header, "add one");
    for (float& x : incoming.vector) x += 1;
    incoming.reply("done");
  };
  auto mine = vector(4099, 2);
  call(0, {.header = "add one", .vector = mine.view(), .lend = Lend::both},
       [](core::Result<std::string> answer) { EXPECT_EQ(answer, "done"); });
  finish();
  const auto wanted = vector(4099, 2);
  for (std::size_t i = 0; i < mine.size(); ++i) ASSERT_EQ(mine.data()[i], wanted.data()[i] + 1);
}

TEST_P(CallsOf, LendsInOneDirectionOnly) {
  auto mine = vector(100, 5);
  serve = [](Calls::Incoming incoming) {
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

TEST_P(CallsOf, AHeaderAloneIsACallToo) {
  serve = [](Calls::Incoming incoming) {
    EXPECT_TRUE(incoming.vector.empty());
    incoming.reply(incoming.header + "!");
  };
  call(1, {.header = std::string(kMostHeader - 1, 'x')},
       [](auto answer) { EXPECT_EQ(answer, std::string(kMostHeader - 1, 'x') + "!"); });
  finish();
}

TEST_P(CallsOf, RoundsOncePerDirection) {
  serve = [](Calls::Incoming incoming) { incoming.reply(""); };
  for (const auto half : {core::HalfKind::fp16, core::HalfKind::bf16}) {
    auto mine = vector(777, 1.2345f);
    const auto before = vector(777, 1.2345f);
    const auto sent = company_->bytes_sent(0);
    call(0, {.header = "", .vector = mine.view(), .lend = Lend::both, .half = half},
         [&](auto answer) { EXPECT_TRUE(answer); });
    finish();
    for (std::size_t i = 0; i < mine.size(); ++i)
      ASSERT_EQ(mine.data()[i], core::from_half(core::to_half(before.data()[i], half), half));
    EXPECT_EQ(company_->bytes_sent(0) - sent, 777 * 2 + 256U);
  }
}

/// A master goes as it is, and what was added to it comes back rounded: a change of a 2⁻¹² part of it is still seen.
TEST_P(CallsOf, OfAMasterOnlyTheChangeIsRounded) {
  serve = [](Calls::Incoming incoming) {
    EXPECT_EQ(incoming.vector[1], 1.2345F + 1.F / 1000) << "as it was sent";
    for (float& x : incoming.vector) x -= 0x1.23456p-12F;
    incoming.reply("");
  };
  for (const auto half : {core::HalfKind::fp16, core::HalfKind::bf16}) {
    auto mine = vector(777, 1.2345F);
    const auto before = vector(777, 1.2345F);
    const std::uint64_t sent[] = {company_->bytes_sent(0), company_->bytes_sent(1)};
    call(0, {.header = "", .vector = mine.view(), .lend = Lend::both, .half = half, .rounding = core::Rounding::change},
         [&](auto answer) { EXPECT_TRUE(answer); });
    finish();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const float x = before.data()[i];
      const float change = (x - 0x1.23456p-12F) - x;
      ASSERT_EQ(mine.data()[i], x + core::from_half(core::to_half(change, half), half)) << i;
    }
    EXPECT_EQ(company_->bytes_sent(0) - sent[0], 777 * 4 + 256U);
    company_->drive(
        [&] { return company_->bytes_sent(1) - sent[1] >= 777 * 2 + 256U; });  // the callee hears of it later
    EXPECT_EQ(company_->bytes_sent(1) - sent[1], 777 * 2 + 256U);
  }
}

TEST_P(CallsOf, AnAnswerAloneCanBeRoundedAndNothingCanBe) {
  serve = [](Calls::Incoming incoming) {
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

/// What is no number has no change: then what the callee has comes itself, in place of it.
TEST_P(CallsOf, WhatCannotBeChangedIsReplaced) {
  serve = [](Calls::Incoming incoming) {
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
      const bool has_change = std::isfinite(bad) && half == core::HalfKind::bf16;  // fp16 does not reach to 1e38
      for (std::size_t i = 0; i < 49; ++i) ASSERT_NEAR(mine.data()[i], 1.5F, has_change ? 0.01 : 0) << i;
      EXPECT_TRUE(has_change || mine.data()[49] == 1.5F);
    }
  }
}

/// Many at once, both ways, answered in another order, some later.
TEST_P(CallsOf, ManyAtOnceFindTheirAnswers) {
  constexpr std::size_t kCalls = 60;
  std::vector<std::pair<std::string, Calls::Reply>> held;
  serve = [&](Calls::Incoming incoming) {
    for (float& x : incoming.vector) x *= 2;
    if (incoming.header.back() % 2 == 0) return incoming.reply(incoming.header);
    held.emplace_back(incoming.header, incoming.reply);
  };
  std::vector<core::Buffer> data;
  for (std::size_t k = 0; k < kCalls; ++k) data.push_back(vector(10 + 13 * k, static_cast<float>(k)));
  for (std::size_t k = 0; k < kCalls; ++k)
    call(k % 2, {.header = std::to_string(k), .vector = data[k].view(), .lend = Lend::both},
         [k](auto answer) { EXPECT_EQ(answer, std::to_string(k)); });
  company_->drive([&] { return held.size() == kCalls / 2; });
  for (auto& [header, reply] : held) reply(header);
  finish();
  for (std::size_t k = 0; k < kCalls; ++k) EXPECT_EQ(data[k].data()[0], 2 * static_cast<float>(k));
}

TEST_P(CallsOf, WhatWentWrongIsAnAnswer) {
  serve = [](Calls::Incoming incoming) { incoming.reply(core::fail(core::Errc::diverged, "shard 3 is not finite")); };
  auto mine = vector(10, 1);
  call(0, {.header = "", .vector = mine.view(), .lend = Lend::both}, [](core::Result<std::string> answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, core::Errc::diverged);
    EXPECT_EQ(answer.error().message, "shard 3 is not finite");
  });
  finish();
}

TEST_P(CallsOf, AllCallsToAPeerThatGoesEnd) {
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
  company_->poll();
  company_->endpoint(1).close();
  finish();
  EXPECT_EQ(failed, 2U);
  company_->drive([this] { return lost_[0].size() == 1; });
  call(0, {.header = "too late"}, [&](auto answer) { EXPECT_FALSE(answer); });
  finish();
  EXPECT_EQ(lost_[0].size(), 1U);
}

/// A peer that sends what is no envelope, or asks for more than there may be, is dropped and nobody else.
TEST_P(CallsOf, NonsenseEndsTheConnection) {
  const auto envelope = transport::make_tag(
      {.run = 1, .exchange = 0, .kind = transport::TagKind::signal, .shard = transport::kMaxShard, .chunk = 0});
  Bytes nonsense = transport::testing::pattern(256, 1);
  company_->courier(1).send(company_->group(1).peers[0], envelope, transport::testing::view(nonsense),
                            [](auto, const auto&) {});
  company_->drive([this] { return !lost_[0].empty(); });
  EXPECT_EQ(lost_[0][0].code, core::Errc::corrupt);
}

TEST_P(CallsOf, AVectorLongerThanAllowedEndsTheConnection) {
  auto mine = vector(kMost + 1, 0);
  call(0, {.header = "", .vector = mine.view(), .lend = Lend::read}, [](auto answer) { EXPECT_FALSE(answer); });
  finish();
  company_->drive([this] { return !lost_[1].empty(); });
  EXPECT_EQ(lost_[1][0].code, core::Errc::corrupt);
}

// ---- a peer that sends what it likes, when it likes

/// Host memory, and how much of it is out.
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

/// Rank 0 has calls; rank 1 is a courier alone.
class CallsOfARawPeer : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override {
    company_.emplace(GetParam(), 2);
    calls_ = std::make_unique<Calls>(
        company_->endpoint(0), company_->courier(0), core::host_kernels(), memory_, kMost, 1,
        [this](Calls::Incoming incoming) {
          headers_.push_back(incoming.header);
          serve(std::move(incoming));
        },
        [this](Peer, const core::Error& error) { lost_.push_back(error); });
    calls_->listen(company_->group(0).peers[1]);
  }
  void TearDown() override { company_.reset(); }

  static transport::Tag tag(transport::TagKind kind, std::uint32_t id) {
    return transport::make_tag({.run = 1, .exchange = id, .kind = kind, .shard = Envelope::kShard, .chunk = 0});
  }
  static Envelope call(std::uint32_t id, Lend lend, std::size_t floats, const std::string& header) {
    Envelope envelope{.lend = lend, .id = id, .floats = floats};
    envelope.set(header);
    return envelope;
  }
  /// Posts it; what it carries lives until the test's end.
  void send(transport::TagKind kind, std::uint32_t id, Bytes bytes) {
    kept_.push_back(std::move(bytes));
    ++sending_;
    company_->courier(1).send(company_->group(1).peers[0], tag(kind, id), transport::testing::view(kept_.back()),
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
  /// The answer, and its vector where there is one.
  void take_answer(std::uint32_t id, std::size_t floats) {
    for (const auto& [kind, size] : {std::pair{transport::TagKind::signal, sizeof(Envelope)},
                                     {transport::TagKind::pull, floats * sizeof(float)}}) {
      if (size == 0) continue;
      kept_.emplace_back(size);
      company_->courier(1).receive(company_->group(1).peers[0], tag(kind, kind == transport::TagKind::pull ? id : 0),
                                   transport::testing::view(kept_.back()), [](auto, const auto&) {});
    }
  }
  void drive(const std::function<bool()>& done) { company_->drive(done); }

  CountedMemory memory_;
  std::optional<Company> company_;
  std::unique_ptr<Calls> calls_;
  std::vector<std::string> headers_;  // of the calls that were handed over, in order
  std::vector<core::Error> lost_;
  std::size_t sending_ = 0;
  std::deque<Bytes> kept_;
  std::function<void(Calls::Incoming)> serve = [](auto incoming) { incoming.reply(""); };
};

INSTANTIATE_TEST_SUITE_P(Endpoints, CallsOfARawPeer, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

/// A pull that was made after a push finds it done, however late the push's vector is.
TEST_P(CallsOfARawPeer, ACallWaitsForTheVectorOfTheOneBefore) {
  send(call(0, Lend::read, 1000, "push"));
  send(call(1, Lend::write, 1000, "pull"));
  send(call(2, Lend::both, 1000, "push and pull"));
  send(call(3, Lend::nothing, 0, "a header alone"));
  send_vector(2, 1000);
  drive([this] { return sending_ <= 1; });  // the envelopes are there; the vector at most is under way
  company_->poll();
  EXPECT_TRUE(headers_.empty());
  send_vector(0, 1000);
  drive([this] { return headers_.size() == 4; });
  EXPECT_EQ(headers_, (std::vector<std::string>{"push", "pull", "push and pull", "a header alone"}));
}

TEST_P(CallsOfARawPeer, CallsBeyondTheRoomForTheirVectorsWaitTheirTurn) {
  std::deque<Calls::Reply> replies;
  serve = [&](Calls::Incoming incoming) { replies.push_back(std::move(incoming.reply)); };
  constexpr std::uint32_t kCalls = kMostVectors + 5;
  for (std::uint32_t id = 0; id < kCalls; ++id) send(call(id, Lend::write, kMost, std::to_string(id)));
  drive([&] { return sending_ == 0 && replies.size() == kMostVectors; });
  company_->poll();
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

TEST_P(CallsOfARawPeer, MoreCallsThanMayBeEndTheConnection) {
  for (std::uint32_t id = 0; id <= kMostCalls; ++id) send(call(id, Lend::read, kMost, ""));
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
  EXPECT_LE(memory_.out, kMostVectors * kMost * sizeof(float));
}

TEST_P(CallsOfARawPeer, AnswersThatNobodyTakesAreCallsThatAreOpen) {
  for (std::uint32_t id = 0; id <= kMostCalls + 256; ++id) send(call(id, Lend::nothing, 0, ""));
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
}

TEST_P(CallsOfARawPeer, AnAnswerToNothingEndsTheConnection) {
  send({.type = Envelope::Type::answer, .id = 7});
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
}

TEST_P(CallsOfARawPeer, AVectorOfAnotherLengthEndsTheConnection) {
  send(call(0, Lend::read, 1000, ""));
  send_vector(0, 999);
  drive([this] { return !lost_.empty(); });
  EXPECT_EQ(lost_[0].code, core::Errc::corrupt);
  EXPECT_TRUE(headers_.empty());
}

}  // namespace
}  // namespace troupe::exchange::testing
