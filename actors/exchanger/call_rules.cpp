#include "actors/exchanger/call_rules.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "transport/exchange/reduce.hpp"

namespace troupe::actors {

using exchange::Lend;
using strategies::Transfer;

namespace {

/// Above any run's numbers, and far enough below 2^64 for safe arithmetic.
constexpr std::uint64_t kMostExchange = std::uint64_t{1} << 52;
constexpr float kMostRate = 1e6F;

bool within(double value, double least, double most) { return std::isfinite(value) && value >= least && value <= most; }

}  // namespace

Lend lend_of(Transfer kind) noexcept {
  switch (kind) {
    case Transfer::push: return Lend::read;
    case Transfer::pull: return Lend::write;
    case Transfer::push_pull: break;
  }
  return Lend::both;
}

bool CallRules::speaks_for(std::uint32_t site, strategies::WorkerId worker) const {
  return worker < places_.worker_sites.size() && places_.worker_sites[worker] == site;
}

ArenaPosition CallRules::position_of_shard(strategies::ShardId shard) const {
  return transport::slice_of(arena_.arena_floats, shard, places_.server_sites.size()).offset;
}

std::size_t CallRules::floats_of_shard(strategies::ShardId shard) const {
  return transport::slice_of(arena_.arena_floats, shard, places_.server_sites.size()).count;
}

ArenaPosition CallRules::position_of(const MemberSnapshot& snapshot) const {
  if (snapshot.server) return position_of_shard(snapshot.member);
  if (snapshot.order.slot == strategies::kStatistics) return {};
  return 0;
}

std::size_t CallRules::floats_of(const MemberSnapshot& snapshot) const {
  if (snapshot.server) return floats_of_shard(snapshot.member);
  return snapshot.order.slot == strategies::kStatistics ? arena_.statistics_floats : arena_.arena_floats;
}

std::size_t CallRules::packed(ArenaPosition position, std::size_t floats) const {
  return arena_.packing && position ? arena_.packing->packed(*position, floats) : floats;
}

Refusal CallRules::check_length(const exchange::Rpc::Incoming& call, ArenaPosition position, std::size_t floats) const {
  const auto wanted = packed(position, floats);
  if (call.vector.size() == wanted) return {};
  return fmt::format("its vector has {} floats, not {}", call.vector.size(), wanted);
}

Refusal CallRules::check(std::uint32_t from, const ShardMessage& message, const exchange::Rpc::Incoming& call) {
  const auto& request = message.request;
  if (!speaks_for(from, request.worker)) return fmt::format("worker {} is at another site", request.worker);
  if (message.shard >= places_.server_sites.size() || places_.server_sites[message.shard] != places_.here)
    return fmt::format("shard {} is not here", message.shard);
  if (request.kind > Transfer::push_pull || call.lend != lend_of(request.kind))
    return std::string("a transfer of no kind, or one whose vector travels another way");
  if (auto length = check_length(call, position_of_shard(message.shard), floats_of_shard(message.shard))) return length;
  if (request.exchange > kMostExchange) return fmt::format("invalid exchange id {}", request.exchange);
  if (!within(request.epoch, 0, arena_.epochs + 1)) return fmt::format("invalid epoch {}", request.epoch);
  if (!within(request.lr, 0, kMostRate)) return fmt::format("invalid learning rate {}", request.lr);
  auto& clock = clocks_[{request.worker, message.shard}];
  if (request.clock < clock || request.clock > kMostSteps)
    return fmt::format("step {} cannot come after step {}", request.clock, clock);
  clock = request.clock;
  return {};
}

Refusal CallRules::check(std::uint32_t from, const OutgoingPeerMessage& peer_message,
                         const exchange::Rpc::Incoming& call) const {
  if (!arena_.peer_messages) return std::string("this run has no peer messages");
  if (!speaks_for(from, peer_message.peer_message.from))
    return fmt::format("worker {} is at another site", peer_message.peer_message.from);
  if (!speaks_for(places_.here, peer_message.to)) return fmt::format("worker {} is not here", peer_message.to);
  if (call.lend != Lend::read) return std::string("a peer message whose vector travels another way");
  if (!within(peer_message.peer_message.weight, 0, kMostWeight))
    return fmt::format("invalid weight {}", peer_message.peer_message.weight);
  return check_length(call, 0, arena_.arena_floats);
}

Refusal CallRules::check(std::uint32_t from, const MemberSnapshot& snapshot,
                         const exchange::Rpc::Incoming& call) const {
  if (from != 0) return std::string("only the coordinator asks for snapshots");
  const auto& sites = snapshot.server ? places_.server_sites : places_.worker_sites;
  if (snapshot.member >= sites.size() || sites[snapshot.member] != places_.here)
    return fmt::format("{} {} is not here", snapshot.server ? "server" : "worker", snapshot.member);
  if (call.lend != Lend::write) return std::string("a snapshot whose vector travels another way");
  return check_length(call, position_of(snapshot), floats_of(snapshot));
}

Refusal CallRules::check(const ShardMessage& message, const ShardAnswer& answer) const {
  const auto& reply = answer.reply;
  const auto& request = message.request;
  if (reply.worker != request.worker || reply.shard != message.shard || reply.exchange != request.exchange)
    return std::string("it answered another request");
  if (reply.version > kMostExchange || reply.staleness > reply.version)
    return fmt::format("invalid version {} with staleness {}", reply.version, reply.staleness);
  if (reply.min_clock > kMostSteps) return fmt::format("workers cannot have come to step {}", reply.min_clock);
  if (reply.held.count() < 0 || reply.queued.count() < 0) return std::string("it waited for less than no time");
  if (reply.last && *reply.last >= places_.worker_sites.size())
    return fmt::format("it waited for worker {}, who is not there", *reply.last);
  return {};
}

Refusal CallRules::check(const MemberSnapshot& snapshot, const SnapshotTaken& taken) const {
  if (taken.id != snapshot.order.id) return std::string("it answered for another snapshot");
  if (!within(taken.weight, 0, kMostWeight)) return fmt::format("invalid weight {}", taken.weight);
  if (taken.optimizer_steps > kMostExchange)
    return fmt::format("invalid number of optimizer steps: {}", taken.optimizer_steps);
  if (taken.version > kMostExchange) return fmt::format("invalid version {}", taken.version);
  return {};
}

}  // namespace troupe::actors
