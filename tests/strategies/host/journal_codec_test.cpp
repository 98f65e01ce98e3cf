#include "strategies/host/journal_codec.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace troupe::strategies {
namespace {

/// One event of every kind, with a different value in every field.
std::vector<WorkerEvent> worker_events() {
  return {
      Started{0x0102030405060708},
      BucketReady{7, 2, 5},
      StepDone{9, 1.25, {.kind = core::OptimizerKind::nesterov, .lr = 0.1F, .momentum = 0.9F, .weight_decay = 5e-4F}},
      Stopped{11},
      Replied{12, 3, 45, 6},
      ExchangeDone{13, true},
      ExchangeDone{14, false},
      PeerMessageArrived{4, 0.125, staged(131)},
      SendSkipped{5, 0.0625},
      MembershipChanged{{6, {0, 2, 9}}},
      MembershipChanged{{7, {}}},
      DeadlinePassed{std::numeric_limits<DeadlineId>::max()}};
}
std::vector<ServerEvent> server_events() {
  return {Request{.id = 1,
                  .worker = 2,
                  .exchange = 3,
                  .kind = Transfer::pull,
                  .clock = 4,
                  .version = 5,
                  .epoch = -0.5,
                  .lr = 0.01F},
          MembershipChanged{{8, {1, 3}}}, DeadlinePassed{10}};
}

TEST(JournalCodec, EveryWorkerEventRoundTrips) {
  std::vector<bool> seen(std::variant_size_v<WorkerEvent>);
  for (const auto& event : worker_events()) {
    seen[event.index()] = true;
    const auto record = encode(WorkerId{3}, event);
    EXPECT_TRUE(is_worker_event(record.kind));
    EXPECT_FALSE(is_server_event(record.kind));
    EXPECT_EQ(record.kind, static_cast<std::uint16_t>(EventKind::started) + event.index());
    const auto back = decode_worker_event(record);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, (WorkerRecord{3, event})) << "alternative " << event.index();
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0) << "an event has no round trip";
}

TEST(JournalCodec, EveryServerEventRoundTrips) {
  std::vector<bool> seen(std::variant_size_v<ServerEvent>);
  for (const auto& event : server_events()) {
    seen[event.index()] = true;
    const auto record = encode(ShardId{70'000}, event);
    EXPECT_TRUE(is_server_event(record.kind));
    EXPECT_FALSE(is_worker_event(record.kind));
    const auto back = decode_server_event(record);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, (ServerRecord{70'000, event})) << "alternative " << event.index();
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0) << "an event has no round trip";
}

/// The bytes that docs/formats/journal.md specifies, written out by hand.
TEST(JournalCodec, BytesAreThoseOfTheDocument) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> result;
    for (const int v : values) result.push_back(static_cast<std::byte>(v));
    return result;
  };
  const auto done = encode(WorkerId{0x0a0b}, ExchangeDone{0x1122, true});
  EXPECT_EQ(done.kind, 0x0106);
  EXPECT_EQ(done.payload, bytes({0x0b, 0x0a, 0, 0, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 1}));
  const auto step = encode(WorkerId{1}, StepDone{2,
                                                 1.0,
                                                 {.kind = core::OptimizerKind::momentum,
                                                  .lr = 0.5F,
                                                  .momentum = 1.0F,
                                                  .weight_decay = 0,
                                                  .decay = 0,
                                                  .epsilon = 0.25F,
                                                  .clip_value = 2,
                                                  .clip_norm = 1,
                                                  .t = 3}});
  EXPECT_EQ(step.kind, 0x0103);
  EXPECT_EQ(step.payload, bytes({1,    0,    0,    0, 2, 0,    0,    0, 0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0xf0,
                                 0x3f, 1,    0,    0, 0, 0x3f, 0,    0, 0x80, 0x3f, 0,    0, 0, 0, 0, 0, 0, 0, 0,
                                 0,    0x80, 0x3e, 0, 0, 0,    0x40, 0, 0,    0x80, 0x3f, 3, 0, 0, 0, 0, 0, 0, 0}));
  const auto members = encode(ShardId{0}, ServerEvent{MembershipChanged{{3, {1, 2}}}});
  EXPECT_EQ(members.kind, 0x0202);
  EXPECT_EQ(members.payload, bytes({0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}));
}

TEST(JournalCodec, EveryShorterOrLongerPayloadIsCorrupt) {
  const auto refuses = [](const core::JournalRecord& record, const auto& decode) {
    for (std::size_t size = 0; size < record.payload.size(); ++size) {
      core::JournalRecord shorter{record.kind,
                                  {record.payload.begin(), record.payload.begin() + static_cast<std::ptrdiff_t>(size)}};
      const auto result = decode(shorter);
      ASSERT_FALSE(result) << "kind " << record.kind << " cut to " << size;
      EXPECT_EQ(result.error().code, core::Errc::corrupt);
    }
    auto longer = record;
    longer.payload.push_back(std::byte{0});
    EXPECT_FALSE(decode(longer)) << "kind " << record.kind;
  };
  for (const auto& event : worker_events()) refuses(encode(WorkerId{0}, event), decode_worker_event);
  for (const auto& event : server_events()) refuses(encode(ShardId{0}, event), decode_server_event);
}

TEST(JournalCodec, InvalidValuesAreCorrupt) {
  const auto with = [](core::JournalRecord record, std::size_t at, int value) {
    record.payload.at(at) = static_cast<std::byte>(value);
    return record;
  };
  const auto step = encode(WorkerId{0}, StepDone{});
  EXPECT_TRUE(decode_worker_event(with(step, 20, core::kOptimizerKinds - 1)));
  EXPECT_FALSE(decode_worker_event(with(step, 20, core::kOptimizerKinds))) << "an optimizer that does not exist";
  EXPECT_FALSE(decode_worker_event(with(encode(WorkerId{0}, ExchangeDone{}), 12, 2))) << "a bool that is 2";
  EXPECT_FALSE(decode_worker_event(with(encode(WorkerId{0}, PeerMessageArrived{}), 16, 200)))
      << "a slot kind that does not exist";
  EXPECT_FALSE(decode_worker_event(with(encode(WorkerId{0}, BucketReady{}), 15, 0x80))) << "a bucket below 0";
  EXPECT_FALSE(decode_server_event(with(encode(ShardId{0}, Request{}), 24, 3))) << "a transfer that does not exist";
  const auto members = encode(WorkerId{0}, WorkerEvent{MembershipChanged{{1, {4, 5}}}});
  EXPECT_FALSE(decode_worker_event(with(members, 16, 5))) << "members 5, 5";
  EXPECT_FALSE(decode_worker_event(with(members, 15, 0xff))) << "more members than the payload can hold";
}

TEST(JournalCodec, KindsOfTheOtherSideAndUnknownKindsAreCorrupt) {
  EXPECT_FALSE(decode_server_event(encode(WorkerId{0}, Started{})));
  EXPECT_FALSE(decode_worker_event(encode(ShardId{0}, ServerEvent{DeadlinePassed{}})));
  for (const int kind : {0, 0x0100, 0x010b, 0x0200, 0x0204, 0xffff}) {
    const core::JournalRecord record{static_cast<std::uint16_t>(kind), std::vector<std::byte>(12)};
    EXPECT_FALSE(decode_worker_event(record)) << kind;
    EXPECT_FALSE(decode_server_event(record)) << kind;
    EXPECT_FALSE(is_worker_event(record.kind) || is_server_event(record.kind)) << kind;
  }
}

TEST(JournalCodec, EventsRoundTripAsTextAndDamageIsFound) {
  const std::vector<WorkerEvent> events{Replied{7, 2, 9, 4}, ExchangeDone{7, true}, DeadlinePassed{3},
                                        MembershipChanged{{5, {0, 3}}}};
  const auto text = to_text(events);
  EXPECT_EQ(events_from_text(text).value(), events);
  EXPECT_EQ(to_text({}), "");
  EXPECT_EQ(events_from_text("").value(), std::vector<WorkerEvent>{});
  for (std::size_t cut = 1; cut < to_text({ExchangeDone{7, true}}).size(); ++cut) {
    const auto damaged = events_from_text(text.substr(0, text.size() - cut));
    ASSERT_FALSE(damaged) << cut;
    EXPECT_EQ(damaged.error().code, core::Errc::corrupt);
  }
  EXPECT_FALSE(events_from_text("010x00000000.")) << "no digit";
  EXPECT_FALSE(events_from_text("0201."));
}

}  // namespace
}  // namespace troupe::strategies
