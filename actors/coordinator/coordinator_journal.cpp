// A new journal segment in the middle of a run: all members settle and report their states.
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

/// If a member is lost meanwhile, it is no member of the new segment: the others report their states again.
void CoordinatorBody::rotate() {
  if (ended_ || gives_way()) return;
  rotate_ = false;
  setup_.book->pause();  // an epoch that has just begun is not paused yet
  const Next look = [this] {
    const auto start = book_keeping();
    put(*start, strategies::Membership{epoch_, member_list()});
    const Next begin = [this, start, epoch = epoch_] { epoch == epoch_ ? begin_segment(start) : rotate(); };
    take_member(0, start, [this, begin] { collect_records(begin); });
  };
  // Without servers the model is what the workers have at this moment.
  const Next take = [this, look] { actors_.servers.empty() ? take_model(look) : look(); };
  const Next anew = [this] { rotate(); };
  settle_workers([this, take, anew] { await_peer_messages(take, anew); }, anew);
}

void CoordinatorBody::begin_segment(const std::shared_ptr<Checkpoint>& start) {
  if (gives_way()) return;
  flush_journal();
  ask<Rotated>(
      kDisk, kRecorderSilence, actors_.recorder,
      [this](const Rotated&) {
        journal_.add(encode(PlanRecord{setup_.plan_hash}));
        rotate_ = false;       // only the segment before can have filled up meanwhile
        if (!ended_) go_on();  // a reason to stop may have come meanwhile
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "journal: " + self_->system().render(error)); },
      RotateOrder{}, CheckpointPayload{start});
}

/// A remote member's snapshot and its journal record use different connections; the snapshot may arrive first. The member's answer here
/// arrives after the record: a segment closed then has the record.
void CoordinatorBody::collect_records(const Next& next) {
  const auto left = std::make_shared<std::size_t>(1);
  const auto answered = [this, left, next] {
    if (--*left == 0 && !ended_) next();
  };
  const auto collect = [&](Source site, const auto& member) {
    if (!keeps_journal() || site == 0) return;
    ++*left;
    // Any result counts: a lost member is noticed elsewhere, and a dismissed member has no state to report.
    ask<MemberState>(
        site, member_silence(), member, [answered](const MemberState&) { answered(); },
        [answered](const caf::error&) { answered(); }, StateOrder{});
  };
  for (const auto worker : member_list()) collect(site_of(worker), actors_.workers[worker]);
  for (std::uint32_t server = 0; server < actors_.servers.size(); ++server)
    collect(site_of_server(server), actors_.servers[server]);
  answered();
}

/// When all members have answered, no member waits for another. `absent` runs if a member did not answer.
void CoordinatorBody::settle_workers(const Next& next, const Next& absent) {
  const auto left = std::make_shared<std::size_t>(members());  // 0: further answers are ignored
  for (const auto worker : member_list()) {
    ask<Settled>(
        site_of(worker), member_silence(), actors_.workers[worker],
        [this, left, next](const Settled&) {
          if (*left > 0 && --*left == 0 && !ended_) next();
        },
        [this, left, worker, absent](const caf::error& error) {
          if (std::exchange(*left, 0) > 0) missed(worker, error, absent);
        },
        SettleOrder{});
  }
}

/// Members one after the other: workers, then servers, then the shards' vectors.
void CoordinatorBody::take_member(std::uint32_t member, const std::shared_ptr<Checkpoint>& into, const Next& next) {
  const auto workers = static_cast<std::uint32_t>(actors_.workers.size());
  const auto refused = [this, member, workers](const caf::error& error) {
    if (member < workers) return missed(member, error, [this] { rotate(); });
    fail(core::Errc::timeout,
         fmt::format("member {} did not say what it is: {}", member, self_->system().render(error)));
  };
  const Next following = [this, member, into, next] { take_member(member + 1, into, next); };
  if (member < workers && !is_member(member)) return following();
  if (member < workers) {
    const auto told = [this, member, into, following](const MemberState& state) {
      if (const auto refusal = MemberRules::check(state, actors_.workers.size())) {
        lose(member, "it reports an invalid state: " + *refusal);
        if (!ended_) rotate();
        return;
      }
      const auto start = std::make_shared<WorkerStart>();
      start->state = state.state;
      take_peer_messages(member, state, start, [this, member, into, start, following] {
        take_slots(member, setup_.state_slots, start, [member, into, start, following] {
          put(*into, member, *start);
          following();
        });
      });
    };
    return ask<MemberState>(site_of(member), member_silence(), actors_.workers[member], told, refused, StateOrder{});
  }
  if (const auto server = member - workers; server < actors_.servers.size()) {
    const auto told = [server, into, following](const MemberState& state) {
      put(*into, server, experiment::ServerStart{state.state, state.version});
      following();
    };
    return ask<MemberState>(site_of_server(server), member_silence(), actors_.servers[server], told, refused,
                            StateOrder{});
  }
  if (actors_.servers.empty()) {
    into->vectors.emplace("", *model_);
    return next();
  }
  std::vector<std::string> prefixes;
  for (int k = 0; k < setup_.needs.server_states; ++k) prefixes.push_back(server_state_prefix(k));
  snapshot_shards(strategies::kCenter, [this, into, prefixes, next] {
    into->vectors.emplace("", canonical());
    take_state(prefixes, into, next);
  });
}

/// Unread peer messages of the worker, one after the other. A replay does not reproduce them.
void CoordinatorBody::take_peer_messages(std::uint32_t worker, const MemberState& state,
                                         const std::shared_ptr<WorkerStart>& into, const Next& next) {
  const auto k = into->peer_messages.size();
  if (k == state.peer_messages.size()) return next();
  snapshot_worker(
      worker, state.peer_message_slots[k], whole_arena(),
      [this, worker, state, k, into, next] {
        into->peer_messages.push_back({state.peer_messages[k].from, state.peer_messages[k].weight,
                                       std::make_shared<const std::vector<float>>(canonical())});
        take_peer_messages(worker, state, into, next);
      },
      [this] { rotate(); }, false);
}

void CoordinatorBody::take_slots(std::uint32_t worker, std::vector<Slot> slots,
                                 const std::shared_ptr<WorkerStart>& into, const Next& next) {
  if (slots.empty()) return take_own_statistics(worker, into, next);
  const auto slot = slots.back();
  slots.pop_back();
  snapshot_worker(
      worker, slot, whole_arena(),
      [this, worker, slot, slots, into, next] {
        into->slots.emplace(slot, std::make_shared<const std::vector<float>>(canonical()));
        take_slots(worker, slots, into, next);
      },
      [this] { rotate(); });
}

void CoordinatorBody::take_own_statistics(std::uint32_t worker, const std::shared_ptr<WorkerStart>& into,
                                          const Next& next) {
  if (setup_.graph->statistics().empty()) return next();
  const auto layout = std::make_shared<const nn::Layout>(nn::statistics_layout(*setup_.graph));
  auto arena = core::Buffer::allocate(*setup_.memory, layout->arena_floats());
  if (!arena) return fail(arena.error().code, arena.error().message);
  const auto space = std::make_shared<core::Buffer>(std::move(*arena));
  snapshot_worker(
      worker, strategies::kStatistics, {space->view(), space},
      [layout, space, into, next] {
        into->statistics.resize(layout->canonical_floats());
        layout->to_canonical(space->view(), into->statistics);
        next();
      },
      [this] { rotate(); });
}

}  // namespace troupe::actors
