// Every message survives being serialised, and memory on loan cannot be.
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <gtest/gtest.h>

#include "actors/assembly.hpp"
#include "experiment/run_records.hpp"

namespace troupe::actors {
namespace {

class Messages : public testing::Test {
 protected:
  /// Serialises, reads back, and serialises again: equal bytes mean equal fields, as every field is written.
  template <class T>
  void expect_roundtrip(T value) {
    const auto first = bytes(value);
    T copy{};
    caf::binary_deserializer source(system_, first);
    ASSERT_FALSE(source(copy)) << typeid(T).name();
    EXPECT_EQ(source.remaining(), 0U) << typeid(T).name();
    EXPECT_EQ(bytes(copy), first) << typeid(T).name();
  }

 private:
  template <class T>
  std::vector<char> bytes(T& value) {
    std::vector<char> buffer;
    caf::binary_serializer sink(system_, buffer);
    EXPECT_FALSE(sink(value)) << typeid(T).name();
    return buffer;
  }
  SystemConfig config_;
  caf::actor_system system_{config_};
};

constexpr data::Lease kLease{7, 2, 640, 64, 2.25};
constexpr strategies::Request kRequest{3, 1, 9, strategies::Transfer::push, 11, 12, 1.5, 0.25F};

TEST_F(Messages, RoundTrip) {
  expect_roundtrip(Prepared{1, 2, 3, "no memory", core::Errc::no_space});
  expect_roundtrip(Trouble{core::Errc::diverged, "worker 1, step 2"});
  expect_roundtrip(DeadlineReached{5});
  expect_roundtrip(LeaseRequest{1, 4});
  expect_roundtrip(LeaseGrant{{kLease, kLease}, true});
  expect_roundtrip(BatchReady{3, kLease, 123456789});
  expect_roundtrip(BatchReturn{2});
  expect_roundtrip(DecodeOrder{1, kLease});
  expect_roundtrip(Decoded{1, "train-labels: record 7"});
  expect_roundtrip(ShardMessage{2, kRequest});
  expect_roundtrip(ShardAnswer{{1, 2, 3, 4, 5, 6, 7, true, core::Duration{8}}});
  expect_roundtrip(CollectiveOffer{1, 2, 3});
  expect_roundtrip(CollectiveDone{1, 2, 3});
  expect_roundtrip(PeerLetter{3, 0.25});
  expect_roundtrip(PeerCredit{3});
  expect_roundtrip(LettersOrder{{{1, 2}, {3, 4}}});
  expect_roundtrip(Letters{0.5, {{1, 2}}, {{3, 4}, {5, 6}}, {{1, 0.25}}, {strategies::kVelocity}});
  expect_roundtrip(SiteAddress{"tcp:node1:4242/s01/site", "no such host", core::Errc::config});
  expect_roundtrip(SiteAddresses{{"inproc:0", "", "inproc:2"}, 3, {4, 5}});
  expect_roundtrip(AdmissionOrder{1, "a/b", 3, {4, 5}});
  expect_roundtrip(CollectiveOrder{1, 2, 3, {0, 1, 5}, 5, false});
  expect_roundtrip(CollectiveEnded{2, 3, 4, -5});
  expect_roundtrip(OutgoingLetter{7, {3, 0.25}});
  expect_roundtrip(OutgoingCredit{7, {3}});
  expect_roundtrip(MemberSnapshot{true, 6, {4, strategies::kVelocity}});
  expect_roundtrip(SnapshotOrder{4, strategies::kVelocity});
  expect_roundtrip(SnapshotTaken{4, 0xdeadbeef, 9, 0.5});
  expect_roundtrip(
      MemberState{std::string("a\0b", 3), 8, {{1, 0.5}, {2, 0.25}}, {strategies::kParams, strategies::kVelocity}});
  expect_roundtrip(Rotated{"full"});
  expect_roundtrip(EvaluateOrder{5});
  expect_roundtrip(Evaluated{0.5, 90, 99, 100, "x", core::Errc::data});
  expect_roundtrip(CheckpointOrder{6});
  expect_roundtrip(CheckpointWritten{"a/b", "full", core::Errc::no_space});
  expect_roundtrip(JournalRecords{{1, 2}, {1, 3}, {'a', 'b', 'c', 'd'}});
  expect_roundtrip(Finished{"late"});
  expect_roundtrip(RunStarted{"n", "d", "s", "m", "g", 1, 2, 3, 4, 5, 0.5});
  WorkerProgress progress{.worker = 1, .steps = 2, .samples = 3, .loss = 0.5, .done = {7, 8}};
  progress.staleness_max = 9;
  expect_roundtrip(progress);
  expect_roundtrip(EpochReport{1, 2, 3, 0.1, 0.2, 0.3, 0.4, 0.5, 6, 0.7, 8});
  expect_roundtrip(Note{Note::Level::warning, "w"});
  RunEnd end{.summary = {}, .failed = true, .error = {core::Errc::io, "e"}};
  end.summary.center_hash = "xxh3:1";
  end.summary.per_worker = {progress};
  expect_roundtrip(end);
  expect_roundtrip(Prepare{});
  expect_roundtrip(Halt{});
  expect_roundtrip(Interrupt{});
  expect_roundtrip(CompileOrder{});
  expect_roundtrip(AwaitEnd{});
  expect_roundtrip(Tick{});
  expect_roundtrip(Dismissal{});
  expect_roundtrip(Dismissed{});
  expect_roundtrip(StepOrder{});
  expect_roundtrip(StepEnd{});
  expect_roundtrip(Finish{});
  expect_roundtrip(Completed{});
  expect_roundtrip(SettleOrder{});
  expect_roundtrip(Settled{});
  expect_roundtrip(StateOrder{});
  expect_roundtrip(JournalFull{});
  expect_roundtrip(RotateOrder{});
}

TEST_F(Messages, EveryRegisteredOneHasASerialForm) {
  using Ids = caf::id_block::troupe;
  const auto check = [this]<caf::type_id_t... kOffset>(std::integer_sequence<caf::type_id_t, kOffset...>) {
    (expect_roundtrip(typename caf::type_by_id<Ids::begin + kOffset>::type{}), ...);
  };
  check(std::make_integer_sequence<caf::type_id_t, Ids::end - Ids::begin>{});
}

}  // namespace
}  // namespace troupe::actors
