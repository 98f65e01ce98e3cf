/// What calls of other sites may say (transport/exchange/calls.hpp carries them), before a member here hears of them. A call comes from a site that
/// has been authenticated, or has shown the run's secret: it may speak for the members of that site and for nobody else, of vectors that
/// there are, in numbers that can be. Pure; one thread.
///
/// What is left is believed: a member that pushes nonsense of the right length spoils what it takes part in.
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
#include "transport/exchange/calls.hpp"

namespace troupe::actors {

/// Where a vector lies in an arena; none: it is of another kind.
using ArenaPosition = std::optional<std::size_t>;

class CallRules {
 public:
  /// Who is where, as the company has it.
  struct Places {
    std::uint32_t here = 0;
    std::vector<std::uint32_t> worker_sites{};
    std::vector<std::uint32_t> server_sites{};
  };
  CallRules() = default;
  CallRules(Places places, ArenaPacking arena) : places_(std::move(places)), arena_(std::move(arena)) {}

  /// A worker of site `from` asks a server here.
  [[nodiscard]] Refusal check(std::uint32_t from, const ShardMessage& message, const exchange::Calls::Incoming& call);
  /// A worker of site `from` writes to one here.
  [[nodiscard]] Refusal check(std::uint32_t from, const OutgoingLetter& letter,
                              const exchange::Calls::Incoming& call) const;
  /// The coordinator, at site 0, asks a member here for a vector.
  [[nodiscard]] Refusal check(std::uint32_t from, const MemberSnapshot& snapshot,
                              const exchange::Calls::Incoming& call) const;
  /// What the site of `message.shard` has answered to `message`, and a member's site to `snapshot`.
  [[nodiscard]] Refusal check(const ShardMessage& message, const ShardAnswer& answer) const;
  [[nodiscard]] Refusal check(const MemberSnapshot& snapshot, const SnapshotTaken& taken) const;
  /// What the worker said before is of no interest any more: it is lost, and has a successor one day.
  void forget(strategies::WorkerId worker) {
    std::erase_if(clocks_, [worker](const auto& clock) { return clock.first.first == worker; });
  }

  [[nodiscard]] ArenaPosition position_of_shard(strategies::ShardId shard) const;
  [[nodiscard]] ArenaPosition position_of(const MemberSnapshot& snapshot) const;
  /// Of the vector that a call is about, unpacked: floats.
  [[nodiscard]] std::size_t floats_of_shard(strategies::ShardId shard) const;
  [[nodiscard]] std::size_t floats_of(const MemberSnapshot& snapshot) const;
  [[nodiscard]] std::size_t arena_floats() const noexcept { return arena_.arena_floats; }

 private:
  /// As it travels.
  [[nodiscard]] std::size_t packed(ArenaPosition position, std::size_t floats) const;
  [[nodiscard]] Refusal check_length(const exchange::Calls::Incoming& call, ArenaPosition position,
                                     std::size_t floats) const;
  [[nodiscard]] bool speaks_for(std::uint32_t site, strategies::WorkerId worker) const;

  Places places_;
  ArenaPacking arena_;
  /// That workers elsewhere have come to, by shard: requests to different ones have no order.
  std::map<std::pair<strategies::WorkerId, strategies::ShardId>, strategies::Step> clocks_;
};

/// How the vector of such a request travels.
[[nodiscard]] exchange::Lend lend_of(strategies::Transfer kind) noexcept;

}  // namespace troupe::actors
