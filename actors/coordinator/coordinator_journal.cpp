// A new journal segment in the middle of a run: everyone settles down, and says what it is.
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "nn/layout.hpp"

namespace troupe::actors {

using experiment::WorkerStart;
using strategies::Slot;

namespace {

constexpr core::Duration kRecorderSilence = kDiskSilence + core::Duration(kMargin);  // it may be at the segment before

}  // namespace

/// Whoever is lost meanwhile is no member of the new segment: the others say anew what they are without it.
void CoordinatorBody::rotate() {
  if (ended_ || gives_way()) return;
  rotate_ = false;
  setup_.book->pause();  // an epoch that has just begun does not stand still by itself
  const Next look = [this] {
    const auto start = book_keeping();
    put(*start, strategies::Membership{epoch_, member_list()});
    const Next begin = [this, start, epoch = epoch_] { epoch == epoch_ ? begin_segment(start) : rotate(); };
    take_member(0, start, [this, begin] { collect_records(begin); });
  };
  // Without servers the model is what the workers have now.
  const Next take = [this, look] { company_.servers.empty() ? take_model(look) : look(); };
  const Next anew = [this] { rotate(); };
  settle_workers([this, take, anew] { await_letters(take, anew); }, anew);
}

void CoordinatorBody::begin_segment(const std::shared_ptr<Checkpoint>& start) {
  if (gives_way()) return;
  flush_journal();
  ask<Rotated>(
      kDisk, kRecorderSilence, company_.recorder,
      [this](const Rotated&) {
        journal_.add(encode(PlanRecord{setup_.plan_hash}));
        rotate_ = false;       // what has filled up meanwhile is the segment before
        if (!ended_) go_on();  // a reason to stop may have come
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "journal: " + self_->system().render(error)); },
      RotateOrder{}, CheckpointCargo{start});
}

/// A snapshot of a member elsewhere comes by another connection than its record, and may be faster. What the member answers is behind
/// the record: the segment that is closed then has it.
void CoordinatorBody::collect_records(const Next& next) {
  const auto left = std::make_shared<std::size_t>(1);
  const auto answered = [this, left, next] {
    if (--*left == 0 && !ended_) next();
  };
  const auto collect = [&](Source site, const auto& member) {
    if (!keeps_journal() || site == 0) return;
    ++*left;
    // One that does not answer is missed elsewhere, and one that has been dismissed has no state to tell: an answer it is.
    ask<MemberState>(
        site, member_silence(), member, [answered](const MemberState&) { answered(); },
        [answered](const caf::error&) { answered(); }, StateOrder{});
  };
  for (const auto worker : member_list()) collect(site_of(worker), company_.workers[worker]);
  for (std::uint32_t server = 0; server < company_.servers.size(); ++server)
    collect(site_of_server(server), company_.servers[server]);
  answered();
}

/// When all members have answered, none of them waits for another. `absent`: somebody did not.
void CoordinatorBody::settle_workers(const Next& next, const Next& absent) {
  const auto left = std::make_shared<std::size_t>(members());  // 0: what still comes is of no interest
  for (const auto worker : member_list()) {
    ask<Settled>(
        site_of(worker), member_silence(), company_.workers[worker],
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
  const auto workers = static_cast<std::uint32_t>(company_.workers.size());
  const auto refused = [this, member, workers](const caf::error& error) {
    if (member < workers) return missed(member, error, [this] { rotate(); });
    fail(core::Errc::timeout,
         fmt::format("member {} did not say what it is: {}", member, self_->system().render(error)));
  };
  const Next following = [this, member, into, next] { take_member(member + 1, into, next); };
  if (member < workers && !is_member(member)) return following();
  if (member < workers) {
    const auto told = [this, member, into, following](const MemberState& state) {
      if (const auto refusal = MemberRules::check(state, company_.workers.size())) {
        lose(member, "it says of itself what cannot be: " + *refusal);
        if (!ended_) rotate();
        return;
      }
      const auto start = std::make_shared<WorkerStart>();
      start->state = state.state;
      take_letters(member, state, start, [this, member, into, start, following] {
        take_slots(member, setup_.state_slots, start, [member, into, start, following] {
          put(*into, member, *start);
          following();
        });
      });
    };
    return ask<MemberState>(site_of(member), member_silence(), company_.workers[member], told, refused, StateOrder{});
  }
  if (const auto server = member - workers; server < company_.servers.size()) {
    const auto told = [server, into, following](const MemberState& state) {
      put(*into, server, experiment::ServerStart{state.state, state.version});
      following();
    };
    return ask<MemberState>(site_of_server(server), member_silence(), company_.servers[server], told, refused,
                            StateOrder{});
  }
  if (company_.servers.empty()) {
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

/// Mail that the worker has and has not read, one letter after the other. It is no state that a replay comes to.
void CoordinatorBody::take_letters(std::uint32_t worker, const MemberState& state,
                                   const std::shared_ptr<WorkerStart>& into, const Next& next) {
  const auto k = into->letters.size();
  if (k == state.letters.size()) return next();
  snapshot_worker(
      worker, state.letter_slots[k], whole_arena(),
      [this, worker, state, k, into, next] {
        into->letters.push_back(
            {state.letters[k].from, state.letters[k].weight, std::make_shared<const std::vector<float>>(canonical())});
        take_letters(worker, state, into, next);
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
