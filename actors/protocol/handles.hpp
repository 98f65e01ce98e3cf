/// The typed handles of all actors: who can be told what. Also the messages' serial form (inspect) and type names.
#pragma once

#include "actors/protocol/inspect.hpp"
#include "actors/protocol/site_messages.hpp"

namespace troupe::actors {

using caf::reacts_to;
using caf::replies_to;

/// Computes; owns a Replica on its own thread; the port of a WorkerHost.
using WorkerActor =
    caf::typed_actor<replies_to<Prepare>::with<Prepared, ReplicaFacts>, replies_to<ReplicaStart>::with<ReplicaLoaded>,
                     reacts_to<Company>, reacts_to<BatchReady, LentBatch>, reacts_to<StepOrder>, reacts_to<StepEnd>,
                     reacts_to<ShardAnswer>, reacts_to<CollectiveOffer, Lent>, reacts_to<CollectiveDone>,
                     reacts_to<CollectiveEnded>, reacts_to<PeerLetter, Lent>, reacts_to<PeerCredit>,
                     replies_to<SnapshotOrder, Lent>::with<SnapshotTaken>, reacts_to<DeadlineReached>,
                     replies_to<Dismissal>::with<Dismissed>, replies_to<UpdatesOrder>::with<Updates>,
                     replies_to<SettleOrder>::with<Settled>, replies_to<StateOrder>::with<MemberState>,
                     replies_to<LettersOrder>::with<Letters>, reacts_to<MembershipNews>, reacts_to<TransferNews>,
                     reacts_to<Tick>, reacts_to<Halt>>;
/// Owns a shard of the centre; the port of a ServerHost.
using ServerActor =
    caf::typed_actor<reacts_to<Company>, reacts_to<ShardMessage, Lent>,
                     replies_to<SnapshotOrder, Lent>::with<SnapshotTaken>, replies_to<StateOrder>::with<MemberState>,
                     reacts_to<MembershipNews>, reacts_to<DeadlineReached>, reacts_to<Halt>>;
/// Moves what is lent between members of different sites.
using ExchangerActor = caf::typed_actor<
    replies_to<Prepare>::with<SiteAddress, SiteMemory>, reacts_to<SiteAddresses>,
    replies_to<StartOrder>::with<StartCargo>, reacts_to<StartCargo>, replies_to<SiteMoved>::with<SiteAddress>,
    reacts_to<ArenaPacking>, reacts_to<Company>, reacts_to<SiteBegun>, reacts_to<Completed>,
    reacts_to<ShardMessage, Lent>, reacts_to<ShardAnswer>, reacts_to<OutgoingLetter, Lent>, reacts_to<OutgoingCredit>,
    replies_to<MemberSnapshot, Lent>::with<SnapshotTaken>, reacts_to<CollectiveOrder, Lent>,
    replies_to<MeasureOrder>::with<Measured>, reacts_to<MembershipNews>, reacts_to<Tick>, reacts_to<Halt>>;
/// Turns its worker's leases into batches, ahead of time, as far as it has staging buffers.
using LoaderActor =
    caf::typed_actor<reacts_to<Company>, reacts_to<LeaseGrant>, reacts_to<BatchReturn>, reacts_to<Halt>>;
/// Builds single batches for a loader, one of several in parallel.
using DecoderActor = caf::typed_actor<replies_to<DecodeOrder, LentBatch>::with<Decoded>>;
/// Owns an evaluation replica on its own thread.
using EvaluatorActor = caf::typed_actor<replies_to<EvaluateOrder, Lent, Lent>::with<Evaluated>, reacts_to<Halt>>;
/// Membership, leases, epochs, evaluation, checkpoints and stopping; never a strategy's rule.
using CoordinatorActor =
    caf::typed_actor<reacts_to<Company>, reacts_to<LeaseRequest>, reacts_to<WorkerProgress>, reacts_to<Trouble>,
                     reacts_to<SiteLost>, reacts_to<Interrupt>, reacts_to<JournalFull>, reacts_to<TransferNews>,
                     reacts_to<StillEvaluating>, reacts_to<StillWriting>, reacts_to<Arrived>, reacts_to<Tick>,
                     reacts_to<AwaitEnd>>;
/// Metrics, journal, checkpoints on disk, progress on the terminal.
using RecorderActor =
    caf::typed_actor<reacts_to<RunStarted>, reacts_to<WorkerProgress>, reacts_to<EpochReport>, reacts_to<Note>,
                     reacts_to<JournalRecords>, replies_to<CheckpointOrder, CheckpointCargo>::with<CheckpointWritten>,
                     replies_to<RotateOrder, CheckpointCargo>::with<Rotated>,
                     replies_to<Finish, RunEnd>::with<Finished>, reacts_to<Tick>>;

/// A site in a node's process, until it is halted or its coordinator is gone.
using SiteActor =
    caf::typed_actor<replies_to<SiteOrder>::with<SiteOpened>, replies_to<CompileOrder>::with<SiteReady>,
                     replies_to<SiteAddresses>::with<SiteReady, SiteMembers>, replies_to<SiteCompany>::with<SiteBegun>,
                     replies_to<MeasureOrder>::with<Measured>, reacts_to<Halt>>;
/// One per process that waits for runs (`troupe node`).
using NodeActor =
    caf::typed_actor<replies_to<NodeQuery>::with<NodeFacts>, replies_to<SiteOrder>::with<SiteOpened, OpenedSite>>;

/// Fills the places of lost workers, from the nodes that they were at.
using StewardActor =
    caf::typed_actor<reacts_to<Vacancy>, replies_to<AdmissionOrder>::with<Admission, SiteMembers, OpenedSite>,
                     reacts_to<TransferNews>, reacts_to<Tick>, reacts_to<Halt>>;

/// Everyone's address, as one site sees them: members of other sites are stand-ins. Told once to all, before the first lease;
/// workers begin when they hear it.
struct Company {
  CoordinatorActor coordinator;
  RecorderActor recorder;
  EvaluatorActor evaluator;
  std::vector<WorkerActor> workers;  // by rank
  std::vector<LoaderActor> loaders;  // by rank
  std::vector<ServerActor> servers;  // by shard
  std::uint64_t membership_epoch = 0;
  std::vector<std::uint32_t> worker_sites{};  // by rank; none: everyone is at one site, and there is no exchanger
  std::vector<std::uint32_t> server_sites{};  // by shard
  ExchangerActor exchanger{};                 // of this site
  std::vector<std::uint32_t> members{};       // ascending; none: all
  std::vector<std::uint32_t> site_hosts{};    // by site, any numbers that tell hosts apart; none: all on one
  std::uint32_t site = 0;                     // whose members are told this
  std::string exchange{};                     // how members exchange, as it was decided: ExchangePlan as JSON
  bool operator==(const Company&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Company& x) {
  return f(caf::meta::type_name("Company"), x.coordinator, x.recorder, x.evaluator, x.workers, x.loaders, x.servers,
           x.membership_epoch, x.worker_sites, x.server_sites, x.exchanger, x.members, x.site_hosts, x.site,
           x.exchange);
}

/// A site that a node has made.
struct OpenedSite {
  SiteActor site;
  bool operator==(const OpenedSite&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, OpenedSite& x) {
  return f(caf::meta::type_name("OpenedSite"), x.site);
}

/// Who is at a site, in the order of SiteOrder.
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

/// What a site in another process must know of the company; members of further sites it reaches through its exchanger alone.
struct SiteCompany {
  CoordinatorActor coordinator;
  RecorderActor recorder;
  std::uint64_t membership_epoch = 0;
  std::vector<std::uint32_t> worker_sites;  // by rank
  std::vector<std::uint32_t> server_sites;  // by shard
  std::vector<std::uint32_t> members{};     // ascending; none: all
  std::vector<std::uint32_t> site_hosts{};  // by site
  std::string exchange{};                   // as in Company
  bool operator==(const SiteCompany&) const = default;
};
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteCompany& x) {
  return f(caf::meta::type_name("SiteCompany"), x.coordinator, x.recorder, x.membership_epoch, x.worker_sites,
           x.server_sites, x.members, x.site_hosts, x.exchange);
}

}  // namespace troupe::actors
