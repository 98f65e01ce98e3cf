/// What actors say to each other; what sites and nodes say stands in site_messages.hpp. Control messages are small values with
/// names of nouns; numbers never travel in them. Within one process an exchange is a message that lends a slice of memory (Lent);
/// such messages cannot leave the process: serialising one is an error by construction.
///
/// A message that has a serial form is an aggregate with a defaulted ==. inspect.hpp visits each of its fields, or does not compile
/// (message_fields.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <caf/all.hpp>

#include "actors/protocol/vocabulary.hpp"
#include "core/kernels.hpp"
#include "data/lease.hpp"
#include "nn/backend.hpp"
#include "nn/layout.hpp"
#include "strategies/host/events.hpp"
#include "strategies/host/port.hpp"

namespace troupe::actors {

// ---- memory on loan, within one process

/// One batch in a loader's staging buffer.
struct LentBatch {
  std::span<float> images;
  std::span<std::int32_t> labels;
  std::shared_ptr<const void> owner;
};
/// What a compiled replica is like, for those who exchange with it and for other runs of the same numbers.
struct ReplicaFacts {
  std::shared_ptr<const nn::Layout> layout;
  nn::Plan plan;
};
/// What a checkpoint holds, ready to be written.
struct CheckpointCargo {
  std::shared_ptr<const Checkpoint> checkpoint;
};

/// Messages that say all by being there are all alike.
template <class Message>
requires std::is_empty_v<Message>
constexpr bool operator==(const Message&, const Message&) noexcept { return true; }

// ---- setting up and ending

/// Compile your replica.
struct Prepare {};
struct Prepared {
  std::uint64_t fingerprint = 0;
  std::uint64_t arena_floats = 0;
  std::uint64_t workspace_bytes = 0;
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const Prepared&) const = default;
};
/// Load this into your replica: the last thing before you hear of the company. Answered when that is done.
struct ReplicaStart {
  std::shared_ptr<const StartState> state;
};
struct ReplicaLoaded {};
struct Company;      // handles.hpp: everyone's address
struct SiteCompany;  // there too: what other processes know of it,
struct SiteMembers;  // who is at a site,
struct OpenedSite;   // and the site itself
/// Stop now; lent memory outlives you by its owners.
struct Halt {};
/// Something that ends the run.
struct Trouble {
  core::Errc code = core::Errc::internal;
  std::string text;
  std::uint32_t site = 0;  // where it is
  bool operator==(const Trouble&) const = default;
};
/// There are no more batches: hand in what is left. Answered when nothing is in flight any more.
struct Dismissal {};
struct Dismissed {};
/// The user wants to stop: checkpoint, then end.
struct Interrupt {};
/// Ask for the end of the run: whoever does is sent the RunEnd.
struct AwaitEnd {};
/// A member looks after itself: overdue answers, progress to report.
struct Tick {};

/// A deadline that a half asked for has passed.
struct DeadlineReached {
  strategies::DeadlineId id = 0;
  bool operator==(const DeadlineReached&) const = default;
};

// ---- leases and batches

struct LeaseRequest {
  std::uint32_t worker = 0;
  std::uint32_t count = 1;
  bool operator==(const LeaseRequest&) const = default;
};
struct LeaseGrant {
  std::vector<data::Lease> leases;
  bool after_pause = false;  // training stood still before: nobody waited for a loader
  bool operator==(const LeaseGrant&) const = default;
};
struct BatchReady {
  std::uint32_t buffer = 0;
  data::Lease lease;
  std::int64_t granted_ns =
      0;  // clock when the lease was granted after a pause, else 0: waiting before it is no loading
  bool operator==(const BatchReady&) const = default;
};
struct BatchReturn {
  std::uint32_t buffer = 0;
  bool operator==(const BatchReturn&) const = default;
};
struct DecodeOrder {
  std::uint32_t buffer = 0;
  data::Lease lease;
  bool operator==(const DecodeOrder&) const = default;
};
struct Decoded {
  std::uint32_t buffer = 0;
  std::string error{};  // not empty: names file and record
  bool operator==(const Decoded&) const = default;
};

// ---- steps and exchanges

/// A worker to itself: compute the next step; the step is computed. Through the mailbox, so that answers that came first are
/// heard first.
struct StepOrder {};
struct StepEnd {};
/// A worker's part of an exchange, with a Lent slice.
struct ShardMessage {
  strategies::ShardId shard = 0;
  strategies::Request request;
  strategies::Rounding rounding = strategies::Rounding::both;  // what a wire may round of the slice
  /// The server's clock when the worker sent it, or when it arrived from another process; 0: unknown.
  std::int64_t sent_ns = 0;
  bool operator==(const ShardMessage&) const = default;
};
struct ShardAnswer {
  strategies::ShardReply reply;
  std::string refused{};  // not empty: the request was not heard, and why
  bool operator==(const ShardAnswer&) const = default;
};
/// "My slice is ready", with the Lent slice: one member's part of a collective.
struct CollectiveOffer {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  bool operator==(const CollectiveOffer&) const = default;
};
/// "My share of the work on it is done."
struct CollectiveDone {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  bool operator==(const CollectiveDone&) const = default;
};

/// One worker's vector for another, with a Lent copy of it.
struct PeerLetter {
  strategies::WorkerId from = 0;
  double weight = 0;
  bool operator==(const PeerLetter&) const = default;
};
/// "I have read your letter": the way to `from` is free again.
struct PeerCredit {
  strategies::WorkerId from = 0;
  bool operator==(const PeerCredit&) const = default;
};

/// Letters to a peer, or from it, since the worker began.
struct LetterCount {
  strategies::WorkerId peer = 0;
  std::uint64_t letters = 0;
  bool operator==(const LetterCount&) const = default;
};
/// Between two steps, or when there are no more: say what has been written, and come. Answered when `expected` letters have come
/// from each, or after a second or two with what has: whoever asks asks again.
struct LettersOrder {
  std::vector<LetterCount> expected{};
  bool operator==(const LettersOrder&) const = default;
};
struct Letters {
  double weight = 1;  // the worker's share of the model (WorkerHost::weight); that of unread letters is theirs
  std::vector<LetterCount> sent{};
  std::vector<LetterCount> received{};
  std::vector<PeerLetter> unread{};
  std::vector<strategies::Slot> slots{};  // where a snapshot finds them
  bool operator==(const Letters&) const = default;
};

// ---- the model as it is now

/// Copy `slot` into the Lent space, in its place in the order of things. Both in the arena's layout.
struct SnapshotOrder {
  std::uint64_t id = 0;
  strategies::Slot slot;
  bool journalled = true;  // a replay is to reach the same bits
  bool operator==(const SnapshotOrder&) const = default;
};
/// A SnapshotOrder for a member elsewhere.
struct MemberSnapshot {
  bool server = false;  // else a worker
  std::uint32_t member = 0;
  SnapshotOrder order;
  bool operator==(const MemberSnapshot&) const = default;
};
struct SnapshotTaken {
  std::uint64_t id = 0;
  std::uint64_t hash = 0;             // XXH3-64 of the copied bytes, for the journal
  std::uint64_t version = 0;          // a server's: of its shard; a worker's: Updates::steps
  double weight = 1;                  // a worker's: its share of the model (WorkerHalf::weight)
  std::uint64_t optimizer_steps = 0;  // a worker's: WorkerHost::optimizer_steps
  bool operator==(const SnapshotTaken&) const = default;
};
/// How many of a worker's steps of this session have ended with their update.
struct UpdatesOrder {};
struct Updates {
  std::uint64_t steps = 0;
  bool operator==(const Updates&) const = default;
};
/// Tell your half what has arrived; answered when nothing is in flight any more. Only between steps.
struct SettleOrder {};
struct Settled {};
/// What you are besides your vectors: a journal segment is to begin.
struct StateOrder {};
struct MemberState {
  std::string state;
  std::uint64_t version = 0;                   // a server's: of its shard
  std::vector<PeerLetter> letters;             // a worker's: unread
  std::vector<strategies::Slot> letter_slots;  // where a snapshot finds them
  bool operator==(const MemberState&) const = default;
};
/// The segment has grown to its share of run.journal.
struct JournalFull {};
/// Begin a new segment with the start state that comes along. Answered when what is recorded from then on is the new one's.
struct RotateOrder {};
struct Rotated {};
/// Evaluate the Lent canonical parameters, with the Lent canonical statistics, on the test split.
struct EvaluateOrder {
  std::uint64_t id = 0;
  bool operator==(const EvaluateOrder&) const = default;
};
struct Evaluated {
  double loss = 0;
  std::int64_t top1 = 0;
  std::int64_t top5 = -1;  // below 0: fewer than five classes
  std::int64_t samples = 0;
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const Evaluated&) const = default;
};
/// The evaluator's, while it evaluates; the recorder's, while a checkpoint gets ahead.
struct StillEvaluating {};
struct StillWriting {};
struct CheckpointOrder {
  std::uint64_t step = 0;
  bool operator==(const CheckpointOrder&) const = default;
};
struct CheckpointWritten {
  std::string path;
  std::string error{};  // not empty: nothing was written, with `code`
  core::Errc code = core::Errc::io;
  bool operator==(const CheckpointWritten&) const = default;
};

// ---- the recorder's

/// Encoded journal records of one half, in its order (docs/formats/journal.md).
struct JournalRecords {
  std::vector<std::uint16_t> kinds;
  std::vector<std::uint32_t> sizes;  // bytes of each payload
  std::vector<char> bytes;           // the payloads, one after the other
  bool operator==(const JournalRecords&) const = default;
};
/// Everything is said: write it down and close. Answered when it is on disk.
struct Finish {};
struct Finished {
  std::string error{};
  bool operator==(const Finished&) const = default;
};

}  // namespace troupe::actors
