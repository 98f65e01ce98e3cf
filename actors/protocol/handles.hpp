/// The typed handles of all actors: which messages each actor accepts. Also the messages' serial form (inspect) and type names.
#pragma once

#include "actors/protocol/inspect.hpp"
#include "actors/protocol/site_messages.hpp"

namespace troupe::actors {

using caf::reacts_to;
using caf::replies_to;

/// Computes steps. Owns a Replica, on its own thread. The port of a WorkerHost.
using WorkerActor =
    caf::typed_actor<replies_to<Prepare>::with<Prepared, ReplicaFacts>, replies_to<ReplicaStart>::with<ReplicaLoaded>,
                     reacts_to<ActorDirectory>, reacts_to<BatchReady, BorrowedBatch>, reacts_to<StepOrder>,
                     reacts_to<StepEnd>, reacts_to<ShardAnswer>, reacts_to<CollectiveOffer, BorrowedView>,
                     reacts_to<CollectiveDone>, reacts_to<CollectiveEnded>, reacts_to<PeerMessage, BorrowedView>,
                     reacts_to<PeerCredit>, replies_to<SnapshotOrder, BorrowedView>::with<SnapshotTaken>,
                     reacts_to<DeadlineReached>, replies_to<Dismissal>::with<Dismissed>,
                     replies_to<UpdatesOrder>::with<Updates>, replies_to<SettleOrder>::with<Settled>,
                     replies_to<StateOrder>::with<MemberState>,
                     replies_to<PeerMessageCountsOrder>::with<PeerMessageCounts>, reacts_to<MembershipNews>,
                     reacts_to<TransferNews>, reacts_to<Tick>, reacts_to<Halt>>;
/// Owns a shard of the centre. The port of a ServerHost.
using ServerActor = caf::typed_actor<reacts_to<ActorDirectory>, reacts_to<ShardMessage, BorrowedView>,
                                     replies_to<SnapshotOrder, BorrowedView>::with<SnapshotTaken>,
                                     replies_to<StateOrder>::with<MemberState>, reacts_to<MembershipNews>,
                                     reacts_to<DeadlineReached>, reacts_to<Halt>>;
/// Moves borrowed vectors between members of different sites.
using ExchangerActor =
    caf::typed_actor<replies_to<Prepare>::with<SiteAddress, SiteMemory>, reacts_to<SiteAddresses>,
                     replies_to<StartOrder>::with<StartPayload>, reacts_to<StartPayload>,
                     replies_to<SiteMoved>::with<SiteAddress>, reacts_to<ArenaPacking>, reacts_to<ActorDirectory>,
                     reacts_to<SiteBegun>, reacts_to<Completed>, reacts_to<ShardMessage, BorrowedView>,
                     reacts_to<ShardAnswer>, reacts_to<OutgoingPeerMessage, BorrowedView>, reacts_to<OutgoingCredit>,
                     replies_to<MemberSnapshot, BorrowedView>::with<SnapshotTaken>,
                     reacts_to<CollectiveOrder, BorrowedView>, replies_to<MeasureOrder>::with<Measured>,
                     reacts_to<MembershipNews>, reacts_to<Tick>, reacts_to<Halt>>;
/// Turns its worker's leases into batches ahead of time, as far as it has staging buffers.
using LoaderActor =
    caf::typed_actor<reacts_to<ActorDirectory>, reacts_to<LeaseGrant>, reacts_to<BatchReturn>, reacts_to<Halt>>;
/// Builds single batches for a loader, one of several in parallel.
using DecoderActor = caf::typed_actor<replies_to<DecodeOrder, BorrowedBatch>::with<Decoded>>;
/// Owns an evaluation replica on its own thread.
using EvaluatorActor =
    caf::typed_actor<replies_to<EvaluateOrder, BorrowedView, BorrowedView>::with<Evaluated>, reacts_to<Halt>>;
/// Membership, leases, epochs, evaluation, checkpoints and stopping. It executes no strategy rule.
using CoordinatorActor =
    caf::typed_actor<reacts_to<ActorDirectory>, reacts_to<LeaseRequest>, reacts_to<WorkerProgress>, reacts_to<RunError>,
                     reacts_to<SiteLost>, reacts_to<Interrupt>, reacts_to<SaveRequest>, reacts_to<JournalFull>,
                     reacts_to<TransferNews>, reacts_to<StillEvaluating>, reacts_to<StillWriting>, reacts_to<Arrived>,
                     reacts_to<Tick>, reacts_to<AwaitEnd>>;
/// Metrics, journal, checkpoints on disk, progress on the terminal.
using RecorderActor =
    caf::typed_actor<reacts_to<RunStarted>, reacts_to<WorkerProgress>, reacts_to<EpochReport>,
                     reacts_to<EvaluationReport>, reacts_to<MemberReport>, reacts_to<LedgerReport>, reacts_to<Note>,
                     reacts_to<JournalRecords>, replies_to<CheckpointOrder, CheckpointPayload>::with<CheckpointWritten>,
                     replies_to<RotateOrder, CheckpointPayload>::with<Rotated>,
                     replies_to<Finish, RunEnd>::with<Finished>, reacts_to<Tick>>;

/// A site in a node's process. It ends when it receives Halt or when its coordinator ends.
using SiteActor = caf::typed_actor<replies_to<SiteOrder>::with<SiteOpened>, replies_to<CompileOrder>::with<SiteReady>,
                                   replies_to<SiteAddresses>::with<SiteReady, SiteMembers>,
                                   replies_to<SiteDirectory>::with<SiteBegun>, replies_to<MeasureOrder>::with<Measured>,
                                   reacts_to<Halt>>;
/// One per `troupe node` process, which waits for runs.
using NodeActor = caf::typed_actor<replies_to<NodeQuery>::with<NodeFacts>, replies_to<GpuQuery>::with<GpuReport>,
                                   replies_to<SiteOrder>::with<SiteOpened, OpenedSite>>;

/// Replaces lost workers, on the nodes where they were.
using RejoinManagerActor =
    caf::typed_actor<reacts_to<Vacancy>, replies_to<AdmissionOrder>::with<Admission, SiteMembers, OpenedSite>,
                     reacts_to<TransferNews>, reacts_to<Tick>, reacts_to<Halt>>;

/// The handles of all members, as one site sees them: members of other sites are proxies. Sent to each member before its first lease; a
/// worker begins when it receives them.
struct ActorDirectory {
  CoordinatorActor coordinator;
  RecorderActor recorder;
  EvaluatorActor evaluator;
  std::vector<WorkerActor> workers;  // by rank
  std::vector<LoaderActor> loaders;  // by rank
  std::vector<ServerActor> servers;  // by shard
  std::uint64_t membership_epoch = 0;
  std::vector<std::uint32_t> worker_sites{};  // by rank; empty: all members are at one site, without an exchanger
  std::vector<std::uint32_t> server_sites{};  // by shard
  ExchangerActor exchanger{};                 // of this site
  std::vector<std::uint32_t> members{};       // ascending; none: all
  std::vector<std::uint32_t> site_hosts{};    // by site: equal numbers mean one host; empty: all on one host
  std::uint32_t site = 0;                     // of the members that receive this
  std::string exchange{};                     // how members exchange, as decided: ExchangePlan as JSON
  bool operator==(const ActorDirectory&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, ActorDirectory& x) {
  return f(caf::meta::type_name("ActorDirectory"), x.coordinator, x.recorder, x.evaluator, x.workers, x.loaders,
           x.servers, x.membership_epoch, x.worker_sites, x.server_sites, x.exchanger, x.members, x.site_hosts, x.site,
           x.exchange);
}

/// A site that a node has opened.
struct OpenedSite {
  SiteActor site;
  bool operator==(const OpenedSite&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, OpenedSite& x) {
  return f(caf::meta::type_name("OpenedSite"), x.site);
}

/// The members of a site, in the order of SiteOrder.
struct SiteMembers {
  std::vector<WorkerActor> workers;
  std::vector<LoaderActor> loaders;
  std::vector<ServerActor> servers;
  bool operator==(const SiteMembers&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteMembers& x) {
  return f(caf::meta::type_name("SiteMembers"), x.workers, x.loaders, x.servers);
}

/// What a site in another process must know of the run. It reaches all other members of other sites only through its exchanger.
struct SiteDirectory {
  CoordinatorActor coordinator;
  RecorderActor recorder;
  std::uint64_t membership_epoch = 0;
  std::vector<std::uint32_t> worker_sites;  // by rank
  std::vector<std::uint32_t> server_sites;  // by shard
  std::vector<std::uint32_t> members{};     // ascending; none: all
  std::vector<std::uint32_t> site_hosts{};  // by site
  std::string exchange{};                   // as in ActorDirectory
  bool operator==(const SiteDirectory&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteDirectory& x) {
  return f(caf::meta::type_name("SiteDirectory"), x.coordinator, x.recorder, x.membership_epoch, x.worker_sites,
           x.server_sites, x.members, x.site_hosts, x.exchange);
}

}  // namespace troupe::actors
