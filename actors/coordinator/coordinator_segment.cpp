// A new journal segment in the middle of a run: every member reports its state.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "nn/layout.hpp"

namespace troupe::actors {

using experiment::WorkerStart;
using strategies::Slot;

void CoordinatorBody::begin_segment(const Next& next) {
  ask<Rotated>(
      kDisk, kRecorderSilence, actors_.recorder,
      [this, next](const Rotated&) {
        running_programs_.clear();
        std::ranges::copy(machine_.members().list(), std::inserter(running_programs_, running_programs_.end()));
        journal_.add(encode(PlanRecord{setup_.plan_hash}));
        next();
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "journal: " + self_->system().render(error)); },
      RotateOrder{}, CheckpointPayload{std::exchange(segment_, nullptr)});
}

/// Members one after the other: workers, then servers, then the shards' vectors.
void CoordinatorBody::take_member(std::uint32_t member, const Continuations& next) {
  const auto workers = static_cast<std::uint32_t>(actors_.workers.size());
  const auto refused = [this, member, workers, next](const caf::error& error) {
    if (member < workers) return missed(member, error, next.interrupted);
    fail(core::Errc::timeout,
         fmt::format("server {} did not report its state: {}", member - workers, self_->system().render(error)));
  };
  const Next following = [this, member, next] { take_member(member + 1, next); };
  if (member < workers && !is_member(member)) return following();
  if (member < workers) {
    const auto told = [this, member, next, following](const MemberState& state) {
      if (const auto refusal = MemberMessageChecks::check(state, actors_.workers.size())) {
        machine_.lost(member, "it reports an invalid state: " + *refusal);
        return next.interrupted();
      }
      const auto start = std::make_shared<WorkerStart>();
      start->state = state.state;
      start->steps = state.steps;
      const Next whole = [this, member, start, following] {
        put(*segment_, member, *start);
        following();
      };
      const Next own = [this, member, start, whole, next] {
        if (!setup_.graph->is_program()) return whole();
        if (setup_.settings->journal.bytes == 0 && running_programs_.contains(member)) return whole();
        // Over a slow link this state takes as long as all else, and everybody waits.
        if (const auto taken = own_states_.find(member); taken != own_states_.end()) {
          start->own_state = taken->second;
          return whole();
        }
        const auto state = std::make_shared<std::vector<std::byte>>();
        start->own_state = state;
        take_own_state(member, state, whole, next.interrupted);
      };
      const Next slots = [this, member, start, own, next] {
        take_slots(member, setup_.state_slots, start, {own, next.interrupted});
      };
      take_peer_messages(member, state, start, {slots, next.interrupted});
    };
    return ask<MemberState>(site_of(member), member_silence(), actors_.workers[member], told, refused, StateOrder{});
  }
  if (const auto server = member - workers; server < actors_.servers.size()) {
    const auto told = [this, server, following](const MemberState& state) {
      put(*segment_, server, experiment::ServerStart{state.state, state.version});
      following();
    };
    return ask<MemberState>(site_of_server(server), member_silence(), actors_.servers[server], told, refused,
                            StateOrder{});
  }
  take_servers(next.done);
}

/// The centre and the servers' states. Without servers: the model that was taken before.
void CoordinatorBody::take_servers(const Next& next) {
  if (actors_.servers.empty()) {
    segment_->vectors.emplace("", model_);
    return next();
  }
  snapshot_shards(strategies::kCenter, [this, next] {
    segment_->vectors.emplace("", canonical());
    std::vector<std::string> prefixes;
    prefixes.reserve(setup_.needs.server_states);
    for (int k = 0; k < setup_.needs.server_states; ++k) prefixes.push_back(server_state_prefix(k));
    take_state(prefixes, segment_, next);
  });
}

/// Unread peer messages of the worker, one after the other. A replay does not reproduce them.
void CoordinatorBody::take_peer_messages(std::uint32_t worker, const MemberState& state,
                                         const std::shared_ptr<WorkerStart>& into, const Continuations& next) {
  const auto k = into->peer_messages.size();
  if (k == state.peer_messages.size()) return next.done();
  snapshot_worker(
      worker, state.peer_message_slots[k], whole_arena(),
      [this, worker, state, k, into, next] {
        into->peer_messages.push_back({state.peer_messages[k].from, state.peer_messages[k].weight, canonical()});
        take_peer_messages(worker, state, into, next);
      },
      next.interrupted, false);
}

void CoordinatorBody::take_slots(std::uint32_t worker, std::vector<Slot> slots,
                                 const std::shared_ptr<WorkerStart>& into, const Continuations& next) {
  if (slots.empty()) return take_own_statistics(worker, into, next);
  const auto slot = slots.back();
  slots.pop_back();
  snapshot_worker(
      worker, slot, whole_arena(),
      [this, worker, slot, slots, into, next] {
        into->slots.emplace(slot, canonical());
        take_slots(worker, slots, into, next);
      },
      next.interrupted);
}

void CoordinatorBody::take_own_statistics(std::uint32_t worker, const std::shared_ptr<WorkerStart>& into,
                                          const Continuations& next) {
  if (setup_.graph->statistics().empty()) return next.done();
  const auto layout = std::make_shared<const nn::Layout>(nn::statistics_layout(*setup_.graph));
  auto arena = core::Buffer::allocate(*setup_.memory, layout->arena_floats());
  if (!arena) return fail(arena.error().code, arena.error().message);
  const auto space = std::make_shared<core::Buffer>(std::move(*arena));
  snapshot_worker(
      worker, strategies::kStatistics, {space->view(), space},
      [layout, space, into, next] {
        into->statistics.resize(layout->canonical_floats());
        layout->to_canonical(space->view(), into->statistics);
        next.done();
      },
      next.interrupted);
}

}  // namespace troupe::actors
