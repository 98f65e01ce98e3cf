/// Checks calls of other sites (transport/exchange/rpc.hpp) before a member here receives them. The calling site has been authenticated, or
/// has shown the run's secret. It may send only for its own members, about vectors that exist, with possible numbers. Pure; one thread.
///
/// Other content is accepted: a member that pushes wrong numbers of the right length corrupts the exchanges it takes part in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/site_messages.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::actors {

/// A vector's position in an arena, in floats; none: the vector is not part of an arena.
using ArenaPosition = std::optional<std::size_t>;

class CallChecks {
 public:
  /// The site of each member, as in the run's directory of actors.
  struct MemberSites {
    std::uint32_t here = 0;
    std::vector<std::uint32_t> worker_sites{};
    std::vector<std::uint32_t> server_sites{};
  };
  CallChecks() = default;
  CallChecks(MemberSites sites, ArenaPacking arena) : sites_(std::move(sites)), arena_(std::move(arena)) {}

  /// A request of a worker at site `from` to a server here.
  [[nodiscard]] Refusal check(std::uint32_t from, const ShardMessage& message, const exchange::Rpc::Incoming& call);
  /// A message of a worker at site `from` to a worker here.
  [[nodiscard]] Refusal check(std::uint32_t from, const OutgoingPeerMessage& peer_message,
                              const exchange::Rpc::Incoming& call) const;
  /// The coordinator, at site 0, asks a member here for a snapshot.
  [[nodiscard]] Refusal check(std::uint32_t from, const MemberSnapshot& snapshot,
                              const exchange::Rpc::Incoming& call) const;
  /// The answers to this site's own calls: of the server's site to `message`, and of a member's site to `snapshot`.
  [[nodiscard]] Refusal check(const ShardMessage& message, const ShardAnswer& answer) const;
  [[nodiscard]] Refusal check(const MemberSnapshot& snapshot, const SnapshotTaken& taken) const;
  /// Drops the steps of a lost worker: its successor may begin at a lower step.
  void forget(strategies::WorkerId worker) {
    std::erase_if(clocks_, [worker](const auto& clock) { return clock.first.first == worker; });
  }

  [[nodiscard]] ArenaPosition position_of_shard(strategies::ShardId shard) const;
  [[nodiscard]] ArenaPosition position_of(const MemberSnapshot& snapshot) const;
  /// Length of the call's vector with padding, in floats.
  [[nodiscard]] std::size_t floats_of_shard(strategies::ShardId shard) const;
  [[nodiscard]] std::size_t floats_of(const MemberSnapshot& snapshot) const;
  [[nodiscard]] std::size_t arena_floats() const noexcept { return arena_.arena_floats; }

 private:
  /// Length of a vector on the wire, in floats.
  [[nodiscard]] std::size_t packed(ArenaPosition position, std::size_t floats) const;
  [[nodiscard]] Refusal check_length(const exchange::Rpc::Incoming& call, ArenaPosition position,
                                     std::size_t floats) const;
  [[nodiscard]] bool may_send_for(std::uint32_t site, strategies::WorkerId worker) const;

  MemberSites sites_;
  ArenaPacking arena_;
  /// Last step in the requests of each remote worker, by shard: requests to different shards have no order.
  std::map<std::pair<strategies::WorkerId, strategies::ShardId>, strategies::Step> clocks_;
};

/// The directions in which the vector of such a request travels.
[[nodiscard]] exchange::Lend lend_of(strategies::Transfer kind) noexcept;

}  // namespace troupe::actors
