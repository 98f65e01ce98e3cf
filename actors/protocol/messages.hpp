/// Messages between actors; messages of sites and nodes are in site_messages.hpp. Control messages are small values named by nouns; they
/// never carry vectors. Within one process an exchange is a message that lends a slice of memory (BorrowedView). Such a message cannot
/// leave the process: serialising it is an error by construction.
///
/// A message with a serial form is an aggregate with a defaulted ==. inspect.hpp visits each of its fields, or does not compile
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
#include "data/order/lease.hpp"
#include "nn/backend.hpp"
#include "nn/layout.hpp"
#include "strategies/host/events.hpp"
#include "strategies/host/port.hpp"

namespace troupe::actors {

// ---- borrowed memory, within one process

/// One batch in a loader's staging buffer: floats, or bytes with cuts, as in nn::Batch.
struct BorrowedBatch {
  std::span<float> images;
  std::span<std::int32_t> labels;
  std::shared_ptr<const void> owner;
  std::span<std::uint8_t> bytes{};
  std::span<nn::Cut> cuts{};
  core::MemorySpace space = core::MemorySpace::host;
};
/// Properties of a compiled replica, for members that exchange with it and for other runs that compute the same numbers.
struct ReplicaFacts {
  std::shared_ptr<const nn::Layout> layout;
  nn::Plan plan;
};
/// The contents of a checkpoint, ready to be written.
struct CheckpointPayload {
  std::shared_ptr<const Checkpoint> checkpoint;
};

/// Messages without fields are always equal.
template <class Message>
requires std::is_empty_v<Message>
constexpr bool operator==(const Message&, const Message&) noexcept { return true; }

// ---- setting up and ending

/// To a worker: compile the replica. To an exchanger: open the endpoint.
struct Prepare {};
struct Prepared {
  std::uint64_t fingerprint = 0;
  std::uint64_t arena_floats = 0;
  std::uint64_t workspace_bytes = 0;
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const Prepared&) const = default;
};
/// Load this state into the replica: the last message before the ActorDirectory. Answered when the state is loaded.
struct ReplicaStart {
  std::shared_ptr<const StartState> state;
};
struct ReplicaLoaded {};
struct ActorDirectory;  // handles.hpp: the handles of all members
struct SiteDirectory;   // there too: what other processes know of the run,
struct SiteMembers;     // the members of a site,
struct OpenedSite;      // and the handle of a site
/// Stop at once. Memory that the actor lent outlives it: the shared owners keep it.
struct Halt {
  /// The run is complete, or was stopped with a checkpoint: programs of the user's may save their model.
  bool in_order = false;
  bool operator==(const Halt&) const = default;
};
/// An error that ends the run.
struct RunError {
  core::Errc code = core::Errc::internal;
  std::string text;
  std::uint32_t site = 0;  // where it happened
  bool operator==(const RunError&) const = default;
};
/// No batches follow: the worker pushes what it still holds. Answered when no exchange is pending.
struct Dismissal {};
struct Dismissed {};
/// The user asks to stop: write a checkpoint, then end.
struct Interrupt {};
/// The user asks for a checkpoint: write one, then go on.
struct SaveRequest {};
/// Wait for the end of the run: the sender then receives the RunEnd.
struct AwaitEnd {};
/// Periodic, to the actor itself: check overdue answers, report progress.
struct Tick {};

/// A deadline that a rule asked for has passed.
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
  bool after_pause = false;  // training was paused before: this wait is not loading time
  bool operator==(const LeaseGrant&) const = default;
};
struct BatchReady {
  std::uint32_t buffer = 0;
  data::Lease lease;
  std::int64_t granted_ns =
      0;  // clock at the grant if it follows a pause, else 0: waiting before it is not loading time
  std::uint32_t replaced = 0;  // samples that could not be read, with others in their place
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
  std::string error{};  // not empty: names file and record; it failed, with `code`
  core::Errc code = core::Errc::internal;
  std::uint32_t replaced = 0;
  bool operator==(const Decoded&) const = default;
};

// ---- steps and exchanges

/// From a worker to itself: compute the next step; the step is computed. They go through the mailbox, so that answers that arrived first
/// are handled first.
struct StepOrder {};
struct StepEnd {};
/// A worker's part of an exchange, with a borrowed slice.
struct ShardMessage {
  strategies::ShardId shard = 0;
  strategies::Request request;
  strategies::Rounding rounding = strategies::Rounding::both;  // what the wire may round of the slice
  /// The server's clock when the worker sent this, or when it arrived from another process; 0: unknown.
  std::int64_t sent_ns = 0;
  bool measure =
      false;  // how far the slice is from the centre, when the server meets it (experiment/accounts/distance.hpp)
  bool operator==(const ShardMessage&) const = default;
};
struct ShardAnswer {
  strategies::ShardReply reply;
  std::string refused{};         // not empty: why the request was refused
  double squared_distance = -1;  // of the slice from the centre, when the server met it; below 0: not measured
  bool operator==(const ShardAnswer&) const = default;
};
/// A member's part of a collective: its slice, borrowed with this message, is ready.
struct CollectiveOffer {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  bool operator==(const CollectiveOffer&) const = default;
};
/// The member has done its share of the collective's work.
struct CollectiveDone {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  bool operator==(const CollectiveDone&) const = default;
};

/// One worker's vector for another worker, with a borrowed copy of it.
struct PeerMessage {
  strategies::WorkerId from = 0;
  double weight = 0;
  bool operator==(const PeerMessage&) const = default;
};
/// The reader `from` has read the peer message: the next one may be sent to it.
struct PeerCredit {
  strategies::WorkerId from = 0;
  bool operator==(const PeerCredit&) const = default;
};

/// Number of peer messages to a peer, or from it, since the worker began.
struct PeerMessageCount {
  strategies::WorkerId peer = 0;
  std::uint64_t peer_messages = 0;
  bool operator==(const PeerMessageCount&) const = default;
};
/// Asks a worker for its counts, between two steps or after the last. Answered when the `expected` peer messages have arrived from each
/// peer, or after a second or two with the counts so far: the coordinator then asks again.
struct PeerMessageCountsOrder {
  std::vector<PeerMessageCount> expected{};
  bool operator==(const PeerMessageCountsOrder&) const = default;
};
struct PeerMessageCounts {
  double weight = 1;  // the worker's share of the model (WorkerHost::weight), without that of unread peer messages
  std::vector<PeerMessageCount> sent{};
  std::vector<PeerMessageCount> received{};
  std::vector<PeerMessage> unread{};
  std::vector<strategies::Slot> slots{};  // of the unread messages, for SnapshotOrder
  bool operator==(const PeerMessageCounts&) const = default;
};

// ---- the model as it is now

/// Copy `slot` into the borrowed space, in mailbox order. Both in the arena's layout.
struct SnapshotOrder {
  std::uint64_t id = 0;
  strategies::Slot slot;
  bool journalled = true;    // a replay must reach the same bits
  bool own_state = false;    // in place of `slot`: what the replica keeps of its optimizer (nn::OwnOptimizer)
  std::uint64_t offset = 0;  // of that, from this byte on; 0 asks the replica, later pieces are of the same state
  bool operator==(const SnapshotOrder&) const = default;
};
/// A SnapshotOrder for a member at another site.
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
  double weight = 1;                  // a worker's: its share of the model (WorkerRule::weight)
  std::uint64_t optimizer_steps = 0;  // a worker's: WorkerHost::optimizer_steps
  std::uint64_t bytes = 0;            // of the whole own state
  bool operator==(const SnapshotTaken&) const = default;
};
/// Asks how many of a worker's steps of this session have ended with their update.
struct UpdatesOrder {};
struct Updates {
  std::uint64_t steps = 0;
  bool operator==(const Updates&) const = default;
};
/// Pass everything that has arrived to the rule. Answered when no exchange is pending. Only between steps.
struct SettleOrder {};
struct Settled {};
/// Asks for a member's state besides its vectors, when a journal segment begins; also a barrier behind the member's records.
struct StateOrder {};
struct MemberState {
  std::string state;
  std::uint64_t version = 0;                         // a server's: of its shard
  std::vector<PeerMessage> peer_messages;            // a worker's: unread
  std::vector<strategies::Slot> peer_message_slots;  // of these, for SnapshotOrder
  std::uint64_t steps = 0;                           // a worker's: nn::Replica::state_of_steps
  bool operator==(const MemberState&) const = default;
};
/// The journal segment has reached its share of run.journal.
struct JournalFull {};
/// Begin a new segment with the start state in this message. Answered when all later records belong to the new segment.
struct RotateOrder {};
struct Rotated {};
/// Evaluate the borrowed canonical parameters, with the borrowed canonical statistics, on these splits.
struct EvaluateOrder {
  std::uint64_t id = 0;
  bool validation = false;
  bool test = true;
  bool operator==(const EvaluateOrder&) const = default;
};
/// The model on one split.
struct SplitScore {
  double loss = 0;
  std::int64_t top1 = 0;   // below 0: a program did not say
  std::int64_t top5 = -1;  // as top1, or fewer than five classes
  std::int64_t samples = 0;
  std::int64_t replaced = 0;  // of them, that could not be read: others stood in their place
  bool operator==(const SplitScore&) const = default;
};
struct Evaluated {
  SplitScore validation{};  // samples 0: not evaluated
  SplitScore test{};
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const Evaluated&) const = default;
};
/// Signs of progress: from the evaluator while it evaluates, from the recorder while its disk jobs advance.
struct StillEvaluating {};
struct StillWriting {};
/// Write a new generation, or replace the best model (RunDirectory::best_file).
struct CheckpointOrder {
  std::uint64_t step = 0;
  bool best = false;
  bool operator==(const CheckpointOrder&) const = default;
};
struct CheckpointWritten {
  std::string path;
  std::string error{};  // not empty: nothing was written, with `code`
  core::Errc code = core::Errc::io;
  bool operator==(const CheckpointWritten&) const = default;
};

// ---- to the recorder

/// Encoded journal records of one member, in its order (docs/formats/journal.md).
struct JournalRecords {
  std::vector<std::uint16_t> kinds;
  std::vector<std::uint32_t> sizes;  // bytes of each payload
  std::vector<char> bytes;           // the payloads, one after the other
  bool operator==(const JournalRecords&) const = default;
};
/// No records follow: write everything and close. Answered when it is on disk.
struct Finish {};
struct Finished {
  std::string error{};
  bool operator==(const Finished&) const = default;
};

}  // namespace troupe::actors
