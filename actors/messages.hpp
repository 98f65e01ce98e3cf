/// What actors say to each other. Control messages are small values with names of nouns; numbers never travel in them.
/// Within one process an exchange is a message that lends a slice of memory (Lent); such messages cannot leave the process:
/// serialising one is an error by construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <caf/all.hpp>

#include "actors/vocabulary.hpp"
#include "core/kernels.hpp"
#include "data/lease.hpp"
#include "exchange/arenas.hpp"
#include "exchange/packing.hpp"
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

// ---- setting up and ending

/// Compile your replica.
struct Prepare {};
struct Prepared {
  std::uint64_t fingerprint = 0;
  std::uint64_t arena_floats = 0;
  std::uint64_t workspace_bytes = 0;
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
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
};
/// There are no more batches: hand in what is left. Answered when nothing is in flight any more.
struct Dismissal {};
struct Dismissed {};
/// The user wants to stop: checkpoint, then end.
struct Interrupt {};
/// Ask for the end of the run; answered when it is over.
struct AwaitEnd {};
/// A member looks after itself: overdue answers, progress to report.
struct Tick {};

/// A deadline that a half asked for has passed.
struct DeadlineReached {
  strategies::DeadlineId id = 0;
};

// ---- leases and batches

struct LeaseRequest {
  std::uint32_t worker = 0;
  std::uint32_t count = 1;
};
struct LeaseGrant {
  std::vector<data::Lease> leases;
  bool after_pause = false;  // training stood still before: nobody waited for a loader
};
struct BatchReady {
  std::uint32_t buffer = 0;
  data::Lease lease;
  std::int64_t granted_ns =
      0;  // clock when the lease was granted after a pause, else 0: waiting before it is no loading
};
struct BatchReturn {
  std::uint32_t buffer = 0;
};
struct DecodeOrder {
  std::uint32_t buffer = 0;
  data::Lease lease;
};
struct Decoded {
  std::uint32_t buffer = 0;
  std::string error{};  // not empty: names file and record
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
  std::int64_t sent_ns = 0;  // the sender's clock, which is the server's too within one process; 0: unknown
};
struct ShardAnswer {
  strategies::ShardReply reply;
};
/// "My slice is ready", with the Lent slice: one member's part of a collective.
struct CollectiveOffer {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
};
/// "My share of the work on it is done."
struct CollectiveDone {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
};

/// One worker's vector for another, with a Lent copy of it.
struct PeerLetter {
  strategies::WorkerId from = 0;
  double weight = 0;
};
/// "I have read your letter": the way to `from` is free again.
struct PeerCredit {
  strategies::WorkerId from = 0;
};

/// Letters to a peer, or from it, since the worker began.
struct LetterCount {
  strategies::WorkerId peer = 0;
  std::uint64_t letters = 0;
};
/// Between two steps, or when there are no more: say what has been written, and come. Answered when `expected` letters have come
/// from each, or after a second or two with what has: whoever asks asks again.
struct LettersOrder {
  std::vector<LetterCount> expected{};
};
struct Letters {
  double weight = 1;  // the worker's share of the model (WorkerHost::weight); that of unread letters is theirs
  std::vector<LetterCount> sent{};
  std::vector<LetterCount> received{};
  std::vector<PeerLetter> unread{};
  std::vector<strategies::Slot> slots{};  // where a snapshot finds them
};

// ---- members of several sites (exchanger.hpp)

/// Where the exchanger of a site can be reached.
struct SiteAddress {
  std::string text;
  std::string error{};  // not empty: there is no endpoint, with `code`
  core::Errc code = core::Errc::internal;
};
/// What the arenas of a site's workers are to be made of, where members elsewhere may sum in them; none: of anything.
struct SiteMemory {
  std::shared_ptr<exchange::Arenas> arenas;
};
/// Everyone's, by site: connect.
struct SiteAddresses {
  std::vector<std::string> texts;  // empty: not to be spoken to
  std::int64_t first_step = -1;    // of a newcomer's worker; below 0: where the start state says
  std::vector<strategies::Version>
      versions{};  // by shard: of the centre that a newcomer begins with; none: as first_step
};
/// A site has a new address: forget the old one.
struct SiteMoved {
  std::uint32_t site = 0;
  std::string address;
};
/// Vectors are arenas of this kind, and travel without their padding.
struct ArenaPacking {
  std::shared_ptr<const exchange::Packing> packing;
};
/// All members of this site have heard of the company: what others ask of them may be told.
struct SiteBegun {};
/// Fetch what the members begin with from site 0.
struct StartOrder {};
/// A checkpoint file's bytes.
struct StartCargo {
  std::shared_ptr<const std::vector<std::byte>> file;
};
/// The endpoint has completions.
struct Completed {};
/// A worker's part of a reduction or broadcast over several sites, with a Lent slice.
struct CollectiveOrder {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  std::vector<strategies::WorkerId> group;  // ascending
  std::int64_t root = -1;                   // of a broadcast
  bool mean = true;                         // else the sum
  std::int64_t offset = -1;                 // of the slice in an arena; below 0: it is of another vector
};
struct CollectiveEnded {
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  strategies::WorkerId last = 0;  // whom it waited for,
  std::int64_t waited_ns = 0;     // so long; 0 where that is not known
};
/// A PeerLetter, with a Lent copy, and its PeerCredit, for a worker elsewhere.
struct OutgoingLetter {
  strategies::WorkerId to = 0;
  PeerLetter letter;
};
struct OutgoingCredit {
  strategies::WorkerId to = 0;
  PeerCredit credit;
};

// ---- nodes (node.hpp)

/// Who are you, and how are you doing?
struct NodeQuery {};
struct NodeFacts {
  std::string version;    // of the program; all nodes of a run have the same
  std::string host;       // its name
  std::string place;      // equal where members can map each other's memory: a host's boot, and its network namespace
  std::string data_host;  // where its endpoints listen
  std::uint32_t cores = 0;
  double load = 0;  // of the last minute, cores
  double cpu = 0;   // this process, cores, since the last query
  std::uint64_t memory_bytes = 0, memory_free_bytes = 0, resident_bytes = 0;
  std::uint32_t gpus = 0;
  double up_s = 0;
  std::vector<std::string> endpoints;  // that this build has
  std::vector<std::string> members;    // of runs: "worker 3 of mnist-easgd"
};
/// Be a site of a run: draw the plan, open the data set and an endpoint.
struct SiteOrder {
  std::string version;  // of whom asks
  std::string run;      // its name
  std::string config;   // TOML, resolved
  std::uint32_t site = 0;
  std::vector<std::uint32_t> workers;  // by rank: who is here
  std::vector<std::uint32_t> servers;  // by shard
  std::string plan;                    // the backend's of the run
  std::uint64_t layout = 0;            // fingerprint of its arenas
  std::uint64_t most_floats = 0;       // of any vector that members lend
  std::string exchange;                // how its members exchange: ExchangePlan as JSON
  std::uint64_t data = 0;              // fingerprint of its data set
  std::string secret;                  // of the run
  bool between_hosts = false;          // ucx: by network only
  bool resumed = false;                // site 0 has a checkpoint to begin with
};
struct SiteOpened {
  std::string address;
  std::string error{};  // not empty: refused, with `code`
  core::Errc code = core::Errc::internal;
};
/// Reduce vectors of zeros, all members in the same order: each length by each algorithm, so many rounds and one to warm up.
struct MeasureOrder {
  std::vector<std::uint32_t> worker_sites;  // by rank: the group
  std::vector<std::uint32_t> site_hosts;    // by site; none: all on one
  std::vector<std::uint64_t> floats;
  std::vector<std::string> algorithms;
  std::uint32_t rounds = 0;
};
struct Measured {
  std::vector<double> seconds{};  // by length, then by algorithm: of the best round here
  std::string error{};            // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
};
/// Compile the replicas already: the rest, which SiteAddresses begin, comes when others stand still for it.
struct CompileOrder {};
/// The site is connected, its replicas compiled, its shards cut; or, of a CompileOrder, its replicas compiled.
struct SiteReady {
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
};

// ---- members that go

/// Who is a member from now on.
struct MembershipNews {
  std::uint64_t epoch = 0;
  std::vector<strategies::WorkerId> workers;  // ascending
};
/// The place of a worker is free: see that somebody comes. Answered when a site has been opened for it, and has compiled.
struct Vacancy {
  strategies::WorkerId worker = 0;
};
struct Arrived {};
/// Training stands still: let the newcomer connect, and load what is in the checkpoint.
struct AdmissionOrder {
  strategies::WorkerId worker = 0;
  std::string checkpoint;  // its path
  strategies::Step first_step = 0;
  std::vector<strategies::Version> versions{};  // by shard: of the centre in it
};
struct Admission {
  std::string error{};  // not empty: nobody came after all
};
/// The exchanger of `site` has lost the one of `lost`.
struct SiteLost {
  std::uint32_t site = 0;
  std::uint32_t lost = 0;
  std::string why;
};

// ---- the model as it is now

/// Copy `slot` into the Lent space, in its place in the order of things. Both in the arena's layout.
struct SnapshotOrder {
  std::uint64_t id = 0;
  strategies::Slot slot;
  bool journalled = true;  // a replay is to reach the same bits
};
/// A SnapshotOrder for a member elsewhere.
struct MemberSnapshot {
  bool server = false;  // else a worker
  std::uint32_t member = 0;
  SnapshotOrder order;
};
struct SnapshotTaken {
  std::uint64_t id = 0;
  std::uint64_t hash = 0;     // XXH3-64 of the copied bytes, for the journal
  std::uint64_t version = 0;  // a server's: of its shard; a worker's: Updates::steps
  double weight = 1;          // a worker's: its share of the model (WorkerHalf::weight)
};
/// How many of a worker's steps of this session have ended with their update.
struct UpdatesOrder {};
struct Updates {
  std::uint64_t steps = 0;
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
};
/// The segment has grown to its share of run.journal.
struct JournalFull {};
/// Begin a new segment with the start state that comes along.
struct RotateOrder {};
struct Rotated {
  std::string error{};  // not empty: the segment goes on
};
/// Evaluate the Lent canonical parameters, with the Lent canonical statistics, on the test split.
struct EvaluateOrder {
  std::uint64_t id = 0;
};
struct Evaluated {
  double loss = 0;
  std::int64_t top1 = 0;
  std::int64_t top5 = -1;  // below 0: fewer than five classes
  std::int64_t samples = 0;
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
};
struct CheckpointOrder {
  std::uint64_t step = 0;
};
struct CheckpointWritten {
  std::string path;
  std::string error{};  // not empty: nothing was written, with `code`
  core::Errc code = core::Errc::io;
};

// ---- the recorder's

/// Encoded journal records of one half, in its order (docs/formats/journal.md).
struct JournalRecords {
  std::vector<std::uint16_t> kinds;
  std::vector<std::uint32_t> sizes;  // bytes of each payload
  std::vector<char> bytes;           // the payloads, one after the other
};
/// Everything is said: write it down and close. Answered when it is on disk.
struct Finish {};
struct Finished {
  std::string error{};
};

}  // namespace troupe::actors
