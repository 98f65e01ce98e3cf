#include "actors/exchanger/call_checks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "nn/checkpoint/own_state.hpp"

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

bool CallChecks::may_send_for(std::uint32_t site, strategies::WorkerId worker) const {
  return worker < sites_.worker_sites.size() && sites_.worker_sites[worker] == site;
}

ArenaPosition CallChecks::position_of_shard(strategies::ShardId shard) const {
  return core::slice_of(arena_.arena_floats, shard, sites_.server_sites.size()).offset;
}

std::size_t CallChecks::floats_of_shard(strategies::ShardId shard) const {
  return core::slice_of(arena_.arena_floats, shard, sites_.server_sites.size()).count;
}

ArenaPosition CallChecks::position_of(const MemberSnapshot& snapshot) const {
  if (snapshot.server) return position_of_shard(snapshot.member);
  if (snapshot.order.own_state || snapshot.order.slot == strategies::kStatistics) return {};
  return 0;
}

std::size_t CallChecks::floats_of(const MemberSnapshot& snapshot) const {
  if (snapshot.server) return floats_of_shard(snapshot.member);
  const bool statistics = !snapshot.order.own_state && snapshot.order.slot == strategies::kStatistics;
  return statistics ? arena_.statistics_floats : arena_.arena_floats;
}

std::size_t CallChecks::packed(ArenaPosition position, std::size_t floats) const {
  return arena_.packing && position ? arena_.packing->packed(*position, floats) : floats;
}

Refusal CallChecks::check_length(const exchange::Rpc::Incoming& call, ArenaPosition position,
                                 std::size_t floats) const {
  const auto wanted = packed(position, floats);
  if (call.vector.size() == wanted) return {};
  return fmt::format("its vector has {} floats, not {}", call.vector.size(), wanted);
}

Refusal CallChecks::check(std::uint32_t from, const ShardMessage& message, const exchange::Rpc::Incoming& call) {
  const auto& request = message.request;
  if (!may_send_for(from, request.worker)) return fmt::format("worker {} is at another site", request.worker);
  if (message.shard >= sites_.server_sites.size() || sites_.server_sites[message.shard] != sites_.here)
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

Refusal CallChecks::check(std::uint32_t from, const OutgoingPeerMessage& peer_message,
                          const exchange::Rpc::Incoming& call) const {
  if (!arena_.peer_messages) return std::string("this run has no peer messages");
  if (!may_send_for(from, peer_message.peer_message.from))
    return fmt::format("worker {} is at another site", peer_message.peer_message.from);
  if (!may_send_for(sites_.here, peer_message.to)) return fmt::format("worker {} is not here", peer_message.to);
  if (call.lend != Lend::read) return std::string("a peer message whose vector travels another way");
  if (!within(peer_message.peer_message.weight, 0, kMostWeight))
    return fmt::format("invalid weight {}", peer_message.peer_message.weight);
  return check_length(call, 0, arena_.arena_floats);
}

Refusal CallChecks::check(std::uint32_t from, const MemberSnapshot& snapshot,
                          const exchange::Rpc::Incoming& call) const {
  if (from != 0) return std::string("only the coordinator asks for snapshots");
  const auto& sites = snapshot.server ? sites_.server_sites : sites_.worker_sites;
  if (snapshot.member >= sites.size() || sites[snapshot.member] != sites_.here)
    return fmt::format("{} {} is not here", snapshot.server ? "server" : "worker", snapshot.member);
  if (snapshot.server && snapshot.order.own_state) return std::string("a server has no optimizer of its own");
  if (call.lend != Lend::write) return std::string("a snapshot whose vector travels another way");
  return check_length(call, position_of(snapshot), floats_of(snapshot));
}

Refusal CallChecks::check(const ShardMessage& message, const ShardAnswer& answer) const {
  const auto& reply = answer.reply;
  const auto& request = message.request;
  if (reply.worker != request.worker || reply.shard != message.shard || reply.exchange != request.exchange)
    return std::string("it answered another request");
  if (reply.version > kMostExchange || reply.staleness > reply.version)
    return fmt::format("invalid version {} with staleness {}", reply.version, reply.staleness);
  if (reply.min_clock > kMostSteps) return fmt::format("invalid minimum clock {}", reply.min_clock);
  if (reply.held.count() < 0 || reply.queued.count() < 0) return std::string("negative waiting time");
  if (std::isnan(answer.squared_distance) || (answer.squared_distance >= 0 && !message.measure))
    return fmt::format("invalid distance {}", answer.squared_distance);
  if (reply.last && *reply.last >= sites_.worker_sites.size())
    return fmt::format("waited for unknown worker {}", *reply.last);
  return {};
}

Refusal CallChecks::check(const MemberSnapshot& snapshot, const SnapshotTaken& taken) const {
  if (taken.id != snapshot.order.id) return std::string("it answered for another snapshot");
  if (!within(taken.weight, 0, kMostWeight)) return fmt::format("invalid weight {}", taken.weight);
  if (taken.optimizer_steps > kMostExchange)
    return fmt::format("invalid number of optimizer steps: {}", taken.optimizer_steps);
  if (taken.version > kMostExchange) return fmt::format("invalid version {}", taken.version);
  if (taken.bytes > (snapshot.order.own_state ? nn::most_own_state(arena_.arena_floats) : 0))
    return fmt::format("invalid size of an optimizer's state: {} bytes", taken.bytes);
  return {};
}

}  // namespace troupe::actors
