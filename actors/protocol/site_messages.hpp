/// What sites and nodes say to each other and to the members of a run: addresses, collectives over several sites, orders to nodes, and
/// members that go and come. Rules as in messages.hpp.
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
  bool operator==(const SiteAddresses&) const = default;
};
/// A site has a new address: forget the old one.
struct SiteMoved {
  std::uint32_t site = 0;
  std::string address;
  bool operator==(const SiteMoved&) const = default;
};
/// What the members of a run lend each other, and how it travels.
struct ArenaPacking {
  std::shared_ptr<const exchange::Packing> packing{};  // without padding; none: as it is
  std::size_t arena_floats = 0;
  std::size_t statistics_floats = 0;
  double epochs = 0;     // of the run
  bool letters = false;  // workers write to each other
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
  strategies::Rounding rounding = strategies::Rounding::both;
  bool operator==(const CollectiveOrder&) const = default;
};
struct CollectiveEnded {
  strategies::Step step = 0;
  strategies::ExchangeId exchange = 0;
  strategies::WorkerId last = 0;  // whom it waited for,
  std::int64_t waited_ns = 0;     // so long; 0 where that is not known
  bool operator==(const CollectiveEnded&) const = default;
};
/// A PeerLetter, with a Lent copy, and its PeerCredit, for a worker elsewhere.
struct OutgoingLetter {
  strategies::WorkerId to = 0;
  PeerLetter letter;
  bool operator==(const OutgoingLetter&) const = default;
};
struct OutgoingCredit {
  strategies::WorkerId to = 0;
  PeerCredit credit;
  bool operator==(const OutgoingCredit&) const = default;
};

/// Of these sites bytes have moved since the last news: a wait for one of them is not over (actors/requests/silence.hpp).
struct TransferNews {
  std::vector<std::uint32_t> sites;
  bool operator==(const TransferNews&) const = default;
};

// ---- nodes (actors/deployment/node.hpp)

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
  bool operator==(const NodeFacts&) const = default;
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
  bool operator==(const SiteOrder&) const = default;
};
struct SiteOpened {
  std::string address;
  std::string error{};  // not empty: refused, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const SiteOpened&) const = default;
};
/// Reduce vectors of zeros, all members in the same order: each length by each algorithm, so many rounds and one to warm up.
struct MeasureOrder {
  std::vector<std::uint32_t> worker_sites;  // by rank: the group
  std::vector<std::uint32_t> site_hosts;    // by site; none: all on one
  std::vector<std::uint64_t> floats;
  std::vector<std::string> algorithms;
  std::uint32_t rounds = 0;
  bool operator==(const MeasureOrder&) const = default;
};
struct Measured {
  std::vector<double> seconds{};  // by length, then by algorithm: of the best round here
  std::string error{};            // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const Measured&) const = default;
};
/// Compile the replicas already: the rest, which SiteAddresses begin, comes when others stand still for it.
struct CompileOrder {};
/// The site is connected, its replicas compiled, its shards cut; or, of a CompileOrder, its replicas compiled.
struct SiteReady {
  std::string error{};  // not empty: it failed, with `code`
  core::Errc code = core::Errc::internal;
  bool operator==(const SiteReady&) const = default;
};

// ---- members that go

/// Who is a member from now on.
struct MembershipNews {
  std::uint64_t epoch = 0;
  std::vector<strategies::WorkerId> workers;  // ascending
  bool operator==(const MembershipNews&) const = default;
};
/// The place of a worker is free: see that somebody comes. Whoever says so is told when a site has been opened for it, and has
/// compiled: at any time, or never.
struct Vacancy {
  strategies::WorkerId worker = 0;
  bool operator==(const Vacancy&) const = default;
};
struct Arrived {
  strategies::WorkerId worker = 0;
  bool operator==(const Arrived&) const = default;
};
/// Training stands still: let the newcomer connect, and load what is in the checkpoint.
struct AdmissionOrder {
  strategies::WorkerId worker = 0;
  std::string checkpoint;  // its path
  strategies::Step first_step = 0;
  std::vector<strategies::Version> versions{};  // by shard: of the centre in it
  bool operator==(const AdmissionOrder&) const = default;
};
struct Admission {
  std::string error{};  // not empty: nobody came after all
  bool operator==(const Admission&) const = default;
};
/// The exchanger of `site` has lost the one of `lost`.
struct SiteLost {
  std::uint32_t site = 0;
  std::uint32_t lost = 0;
  std::string why;
  bool operator==(const SiteLost&) const = default;
};

}  // namespace troupe::actors
