/// Messages of sites and nodes, to each other and to members: addresses, collectives over several sites, orders to nodes, and members that
/// leave and join. Rules as in messages.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/packing.hpp"

namespace troupe::actors {

// ---- members of several sites (actors/exchanger/exchanger.hpp)

/// Where the exchanger of a site can be reached.
struct SiteAddress {
  std::string text;
  std::string error{};  // not empty: there is no endpoint, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const SiteAddress&) const = default;
};
/// Memory for the arenas of a site's workers, where members of other sites may sum in them; none: any memory.
struct SiteMemory {
  std::shared_ptr<exchange::Arenas> arenas;
};
/// The addresses of all sites, by site: connect to them.
struct SiteAddresses {
  std::vector<std::string> texts;  // empty: do not connect
  std::int64_t first_step = -1;    // of a newcomer's worker; below 0: from the start state
  std::vector<strategies::Version>
      versions{};  // by shard: of the centre that a newcomer begins with; none: from the start state
  bool operator==(const SiteAddresses&) const = default;
};
/// A site has a new address, which replaces the old one.
struct SiteMoved {
  std::uint32_t site = 0;
  std::string address;
  bool operator==(const SiteMoved&) const = default;
};
/// How borrowed vectors travel between sites.
struct ArenaPacking {
  std::shared_ptr<const exchange::Packing> packing{};  // without padding; none: vectors travel as they are
  std::size_t arena_floats = 0;
  std::size_t statistics_floats = 0;
  double epochs = 0;           // of the run
  bool peer_messages = false;  // workers send each other peer messages
};
/// All members of this site have received the ActorDirectory: requests of other sites may be passed to them.
struct SiteBegun {};
/// Fetch the start state of this site's members from site 0.
struct StartOrder {};
/// A checkpoint file's bytes.
struct StartPayload {
  std::shared_ptr<const std::vector<std::byte>> file;
};
/// The endpoint has completions.
struct Completed {};
/// A worker's part of a reduction or broadcast over several sites, with a borrowed slice.
struct CollectiveOrder {
  strategies::WorkerId worker = 0;
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  std::vector<strategies::WorkerId> group;  // ascending
  std::int64_t root = -1;                   // the root worker of a broadcast; below 0: a reduction
  bool mean = true;                         // else the sum
  std::int64_t offset = -1;                 // of the slice in an arena, floats; below 0: a slice of another vector
  strategies::Rounding rounding = strategies::Rounding::both;
  bool operator==(const CollectiveOrder&) const = default;
};
struct CollectiveEnded {
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  strategies::WorkerId last = 0;  // the worker that it waited for,
  std::int64_t waited_ns = 0;     // for this long; 0: unknown
  bool operator==(const CollectiveEnded&) const = default;
};
/// A PeerMessage, with a borrowed copy, and its PeerCredit, for a worker at another site.
struct OutgoingPeerMessage {
  strategies::WorkerId to = 0;
  PeerMessage peer_message;
  bool operator==(const OutgoingPeerMessage&) const = default;
};
struct OutgoingCredit {
  strategies::WorkerId to = 0;
  PeerCredit credit;
  bool operator==(const OutgoingCredit&) const = default;
};

/// Bytes have moved at these sites since the last news: a wait for one of them goes on (actors/requests/silence.hpp).
struct TransferNews {
  std::vector<std::uint32_t> sites;
  bool operator==(const TransferNews&) const = default;
};

// ---- nodes (actors/deployment/node.hpp)

/// Asks a node for its identity and its load.
struct NodeQuery {};
struct NodeFacts {
  std::string version;  // of the program; all nodes of a run have the same
  std::string host;     // its name
  std::string
      shared_memory_domain;  // equal where members can map each other's memory: boot id, network and pid namespaces
  std::string data_host;     // where its endpoints listen
  std::uint32_t cores = 0;
  double load = 0;  // of the last minute, cores
  double cpu = 0;   // this process, cores, since the last query
  std::uint64_t memory_bytes = 0, memory_free_bytes = 0, resident_bytes = 0;
  std::uint32_t gpus = 0;
  double up_s = 0;
  std::vector<std::string> endpoints;  // that this build has
  std::vector<std::string> members;    // of runs: "worker 3 of mnist-easgd"
  bool operator==(const NodeFacts&) const = default;
};
/// What the GPUs of a node's machine are doing; not of NodeFacts, which is the same in all versions.
struct GpuQuery {};
struct GpuFacts {
  std::string name, uuid;
  std::int32_t load = -1;  // percent; -1: unknown
  std::uint64_t memory_bytes = 0, memory_used_bytes = 0;
  bool operator==(const GpuFacts&) const = default;
};
struct GpuReport {
  std::vector<GpuFacts> gpus;  // empty where the driver's management library is not there
  bool operator==(const GpuReport&) const = default;
};
/// Become a site of a run: build the RunSpec, open the data set and an endpoint.
struct SiteOrder {
  std::string version;  // of the sender
  std::string run;      // its name
  std::string config;   // TOML, resolved
  std::uint32_t site = 0;
  std::vector<std::uint32_t> workers;  // ranks of the workers here
  std::vector<std::uint32_t> servers;  // shards of the servers here
  std::string plan;                    // the backend's of the run
  std::uint64_t layout = 0;            // fingerprint of its arenas
  std::uint64_t most_floats = 0;       // length of the longest vector that members lend
  std::string exchange;                // how its members exchange: ExchangePlan as JSON
  std::uint64_t data = 0;              // fingerprint of its data set
  std::string secret;                  // of the run
  bool between_hosts = false;          // ucx: by network only
  bool resumed = false;                // site 0 has a checkpoint to begin with
  std::uint32_t sites_here = 1;        // of the run, at this node
  bool operator==(const SiteOrder&) const = default;
};
struct SiteOpened {
  std::string address;
  std::string error{};  // not empty: refused, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const SiteOpened&) const = default;
};
/// Reduce vectors of zeros, all members in the same order: each length by each algorithm, one warm-up round and then `rounds` rounds. Without
/// lengths, and with `shm` as the algorithm: say whether the sites of one host map each other's device memory. Errc::config: they do not. Without
/// lengths, and with `nccl`: make a group of NCCL's, or join `group` where it is given.
struct MeasureOrder {
  std::vector<std::uint32_t> worker_sites;  // by rank: the group
  std::vector<std::uint32_t> site_hosts;    // by site; none: all on one
  std::vector<std::uint64_t> floats;
  std::vector<std::string> algorithms;
  std::uint32_t rounds = 0;
  std::string group{};  // core::DeviceReduction's name of it
  bool operator==(const MeasureOrder&) const = default;
};
struct Measured {
  std::vector<double> seconds{};  // by length, then by algorithm: of the best round at this site
  std::string error{};            // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  std::string group{};  // that was made
  bool operator==(const Measured&) const = default;
};
/// Compile the replicas now. The rest follows with SiteAddresses, while training is paused for it.
struct CompileOrder {};
/// Answer to SiteAddresses: connected, replicas compiled, shards cut. Answer to CompileOrder: replicas compiled.
struct SiteReady {
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  std::string pinning{};  // the cores of its workers, for the user
  bool operator==(const SiteReady&) const = default;
};

// ---- members that leave and join

/// The members from now on.
struct MembershipNews {
  std::uint64_t epoch = 0;
  std::vector<strategies::WorkerId> workers;  // ascending
  bool operator==(const MembershipNews&) const = default;
};
/// The place of a worker is free: find a replacement. The sender receives Arrived when a site for the worker is open and compiled: at any
/// time, or never.
struct Vacancy {
  strategies::WorkerId worker = 0;
  bool operator==(const Vacancy&) const = default;
};
struct Arrived {
  strategies::WorkerId worker = 0;
  bool operator==(const Arrived&) const = default;
};
/// Training is paused: let the newcomer connect and load the checkpoint.
struct AdmissionOrder {
  strategies::WorkerId worker = 0;
  std::string checkpoint;  // its path
  strategies::Step first_step = 0;
  std::vector<strategies::Version> versions{};  // by shard: of the centre in it
  bool operator==(const AdmissionOrder&) const = default;
};
struct Admission {
  std::string error{};  // not empty: the newcomer did not join
  bool operator==(const Admission&) const = default;
};
/// The exchanger of `site` has lost the exchanger of `lost`.
struct SiteLost {
  std::uint32_t site = 0;
  std::uint32_t lost = 0;
  std::string why;
  bool operator==(const SiteLost&) const = default;
};

}  // namespace troupe::actors
