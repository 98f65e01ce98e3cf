// A new journal segment in the middle of a run: every member reports its state.
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "nn/layout.hpp"

namespace troupe::actors {

using experiment::WorkerStart;
using strategies::Slot;

namespace {

constexpr core::Duration kRecorderSilence = kDiskSilence + core::Duration(kMargin);  // it may write the previous one

}  // namespace

void CoordinatorBody::begin_segment(const Next& next) {
  ask<Rotated>(
      kDisk, kRecorderSilence, actors_.recorder,
      [this, next](const Rotated&) {
        journal_.add(encode(PlanRecord{setup_.plan_hash}));
        next();
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "journal: " + self_->system().render(error)); },
      RotateOrder{}, CheckpointPayload{std::exchange(segment_, nullptr)});
}

/// Members one after the other: workers, then servers, then the shards' vectors.
void CoordinatorBody::take_member(std::uint32_t member, const Steps& steps) {
  const auto workers = static_cast<std::uint32_t>(actors_.workers.size());
  const auto refused = [this, member, workers, steps](const caf::error& error) {
    if (member < workers) return missed(member, error, steps.interrupted);
    fail(core::Errc::timeout,
         fmt::format("member {} did not say what it is: {}", member, self_->system().render(error)));
  };
  const Next following = [this, member, steps] { take_member(member + 1, steps); };
  if (member < workers && !is_member(member)) return following();
  if (member < workers) {
    const auto told = [this, member, steps, following](const MemberState& state) {
      if (const auto refusal = MemberRules::check(state, actors_.workers.size())) {
        machine_.lost(member, "it reports an invalid state: " + *refusal);
        return steps.interrupted();
      }
      const auto start = std::make_shared<WorkerStart>();
      start->state = state.state;
      const Next whole = [this, member, start, following] {
        put(*segment_, member, *start);
        following();
      };
      const Next slots = [this, member, start, whole, steps] {
        take_slots(member, setup_.state_slots, start, {whole, steps.interrupted});
      };
      take_peer_messages(member, state, start, {slots, steps.interrupted});
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
  take_servers(steps.done);
}

/// The centre and the servers' states. Without servers: the model that was taken before.
void CoordinatorBody::take_servers(const Next& next) {
  if (actors_.servers.empty()) {
    segment_->vectors.emplace("", *model_);
    return next();
  }
  snapshot_shards(strategies::kCenter, [this, next] {
    segment_->vectors.emplace("", canonical());
    std::vector<std::string> prefixes;
    for (int k = 0; k < setup_.needs.server_states; ++k) prefixes.push_back(server_state_prefix(k));
    take_state(prefixes, segment_, next);
  });
}

/// Unread peer messages of the worker, one after the other. A replay does not reproduce them.
void CoordinatorBody::take_peer_messages(std::uint32_t worker, const MemberState& state,
                                         const std::shared_ptr<WorkerStart>& into, const Steps& steps) {
  const auto k = into->peer_messages.size();
  if (k == state.peer_messages.size()) return steps.done();
  snapshot_worker(
      worker, state.peer_message_slots[k], whole_arena(),
      [this, worker, state, k, into, steps] {
        into->peer_messages.push_back({state.peer_messages[k].from, state.peer_messages[k].weight,
                                       std::make_shared<const std::vector<float>>(canonical())});
        take_peer_messages(worker, state, into, steps);
      },
      steps.interrupted, false);
}

void CoordinatorBody::take_slots(std::uint32_t worker, std::vector<Slot> slots,
                                 const std::shared_ptr<WorkerStart>& into, const Steps& steps) {
  if (slots.empty()) return take_own_statistics(worker, into, steps);
  const auto slot = slots.back();
  slots.pop_back();
  snapshot_worker(
      worker, slot, whole_arena(),
      [this, worker, slot, slots, into, steps] {
        into->slots.emplace(slot, std::make_shared<const std::vector<float>>(canonical()));
        take_slots(worker, slots, into, steps);
      },
      steps.interrupted);
}

void CoordinatorBody::take_own_statistics(std::uint32_t worker, const std::shared_ptr<WorkerStart>& into,
                                          const Steps& steps) {
  if (setup_.graph->statistics().empty()) return steps.done();
  const auto layout = std::make_shared<const nn::Layout>(nn::statistics_layout(*setup_.graph));
  auto arena = core::Buffer::allocate(*setup_.memory, layout->arena_floats());
  if (!arena) return fail(arena.error().code, arena.error().message);
  const auto space = std::make_shared<core::Buffer>(std::move(*arena));
  snapshot_worker(
      worker, strategies::kStatistics, {space->view(), space},
      [layout, space, into, steps] {
        into->statistics.resize(layout->canonical_floats());
        layout->to_canonical(space->view(), into->statistics);
        steps.done();
      },
      steps.interrupted);
}

}  // namespace troupe::actors
