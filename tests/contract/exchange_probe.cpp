#include "tests/contract/exchange_probe.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "tests/contract/evidence.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/protocol.hpp"

namespace troupe::contract {

using namespace strategies;

namespace {

constexpr std::uint8_t kLanes = 3;
constexpr std::uint32_t place(Slot lane, ShardId shard) { return std::uint32_t{lane.index} * 256 + shard; }
constexpr bool is_lane(Slot slot) { return slot.kind == SlotKind::staged; }

std::string text(ExchangeId exchange, ShardId shard, WorkerId self) {
  return "worker " + std::to_string(self) + ", exchange " + std::to_string(exchange) + ", shard " +
         std::to_string(shard);
}

}  // namespace

void ExchangeProbe::on(const Started& event, const WorkerContext& context, WorkerActions& then) {
  look(Promise::started_first, !started_, [&] { return "worker " + std::to_string(context.self) + " starts twice"; });
  started_ = true;
  epoch_ = context.membership.epoch;
  asked_ = event.step;
  begin_evidence(then);
  begin(Transfer::pull, kUnit, {}, true, context.self, then);
}

void ExchangeProbe::begin_steps(const PendingExchange& first, const WorkerContext& context, WorkerActions& then) {
  for (ShardId shard = 0; shard < shards_; ++shard) unit_is_of(then, *first.parts[shard].seen, {shard, 1});
  unit_is_here(then);
  for (std::uint8_t lane = 0; lane < kLanes; ++lane) rest(staged(lane), {0, shards_}, then);
  auto random = context.random();
  compute(asked_, random, then);
}

void ExchangeProbe::compute(Step step, core::Random& random, WorkerActions& then) {
  then.apply(copy(kAnchor, kParams));
  asked_ = step;
  if (in_step_ && random.below(6) == 0) asked_ += 1 + random.below(2);
  asked_ == step ? then.compute() : then.compute_at(asked_);
}

void ExchangeProbe::on(const StepDone& event, const WorkerContext& context, WorkerActions& then) {
  const auto self = context.self;
  look(Promise::started_first, started_, [&] { return "worker " + std::to_string(self) + " ends a step"; });
  look(Promise::stopped_last, !stopped_, [&] { return "worker " + std::to_string(self) + " ends a step"; });
  look(Promise::steps_as_asked, event.step == asked_, [&] {
    return "worker " + std::to_string(self) + " ends step " + std::to_string(event.step) + " in place of " +
           std::to_string(asked_);
  });
  expect_same(then, kParams, kAnchor);
  kept(Promise::parameters_kept);
  auto random = context.random();
  set_deadlines(random, then);
  begin_some(random, self, then);
  if (waits_for_.empty()) compute(context.step, random, then);
}

void ExchangeProbe::begin_some(core::Random& random, WorkerId self, WorkerActions& then) {
  for (std::uint8_t lane = 0; lane < kLanes; ++lane)
    if (random.below(3) > 0) use_lane(lane, random, self, then);
  const auto way = random.below(8);
  if (way < 2) {  // with slots that a step uses: the worker must wait
    const Slot slot = way == 0 ? kParams : kGrads;
    fill_unit(then, slot);
    waits_for_.insert(exchange_id(next_, false));
    begin(Transfer::push_pull, slot, {}, false, self, then);
  } else if (way < 5) {  // waits for all pending exchanges
    for (const auto& [id, pending_exchange] : pending_exchanges_) waits_for_.insert(id);
  }
}

/// Begins an exchange of a random kind with consecutive shards whose slices are free in this lane.
void ExchangeProbe::use_lane(std::uint8_t lane, core::Random& random, WorkerId self, WorkerActions& then) {
  const auto free = [&](ShardId shard) { return shard < shards_ && resting_.contains(place(staged(lane), shard)); };
  const auto first = static_cast<ShardId>(random.below(shards_));
  const auto most = static_cast<ShardId>(1 + random.below(shards_));
  ShardId count = 0;
  while (count < most && free(first + count)) ++count;
  if (count == 0) return;
  const auto kind = static_cast<Transfer>(random.below(3));
  const Shards shards{first, count};
  leave_rest(staged(lane), shards, then);
  if (kind != Transfer::pull) fill_unit(then, staged(lane), shards);
  begin(kind, staged(lane), shards, random.below(4) == 0, self, then);
}

/// The slices must be as they were left, whatever other exchanges did meanwhile.
void ExchangeProbe::leave_rest(Slot lane, Shards shards, WorkerActions& then) {
  const bool beside = std::any_of(pending_exchanges_.begin(), pending_exchanges_.end(),
                                  [&](const auto& f) { return f.second.slot == lane; });
  for (ShardId shard = shards.first; shard < shards.first + shards.count; ++shard) {
    const auto resting = resting_.extract(place(lane, shard));
    expect(then, lane, -static_cast<double>(resting.mapped()), {shard, 1});
    kept(Promise::slice_is_back);
    if (beside) kept(Promise::slices_apart);
  }
}

void ExchangeProbe::rest(Slot lane, Shards shards, WorkerActions& then) {
  for (ShardId shard = shards.first; shard < shards.first + shards.count; ++shard) {
    next_rest_ = next_rest_ % 1000 + 2;
    resting_[place(lane, shard)] = next_rest_;
    fill_with(then, lane, -static_cast<double>(next_rest_), {shard, 1});
  }
}

void ExchangeProbe::begin(Transfer kind, Slot slot, Shards shards, bool sure, WorkerId self, WorkerActions& then) {
  const auto id = exchange_id(next_++, sure);
  PendingExchange pending_exchange{.kind = kind, .slot = slot, .first = shards.first, .parts = {}};
  for (ShardId s = 0; s < (shards.all() ? shards_ : shards.count); ++s) {
    const ShardId shard = shards.first + s;
    const auto fate = fate_of(self, id, shard, kind);
    const bool refused = fate == Fate::refused;
    const bool adds = kind != Transfer::pull && fate != Fate::dropped && !refused;
    pending_exchange.parts.push_back(
        {.at_least = at_least_[shard] + (adds ? 1 : 0), .dropped = fate == Fate::dropped, .refused = refused});
    if (refused) then.apply(fill(slot, std::numeric_limits<float>::infinity()), {shard, 1});
    if (adds && fate != Fate::put_off) ++at_least_[shard];
  }
  pending_exchanges_.emplace(id, std::move(pending_exchange));
  switch (kind) {
    case Transfer::push: return then.push(id, slot, shards);
    case Transfer::pull: return then.pull(id, slot, shards);
    case Transfer::push_pull: return then.push_pull(id, slot, shards);
  }
}

void ExchangeProbe::on(const Replied& event, const WorkerContext& context, WorkerActions&) {
  const auto seen = [&] { return text(event.exchange, event.shard, context.self); };
  const auto pending_exchange = pending_exchanges_.find(event.exchange);
  const std::size_t part =
      pending_exchange == pending_exchanges_.end() ? 0 : event.shard - pending_exchange->second.first;
  const bool asked = pending_exchange != pending_exchanges_.end() && part < pending_exchange->second.parts.size();
  look(Promise::one_answer, asked && !pending_exchange->second.parts[part].seen, seen);
  auto& answered = pending_exchange->second.parts[part];
  answered.seen = event.version;
  look(Promise::answer_of_the_shard, event.min_clock == (answered.dropped ? 0 : clock_of(event.exchange, event.shard)),
       [&] { return seen() + ": its clock is " + std::to_string(event.min_clock); });
  look(Promise::pull_sees_push, event.version >= answered.at_least, [&] {
    return seen() + ": version " + std::to_string(event.version) + " without all of " +
           std::to_string(answered.at_least);
  });
  auto& at_least = at_least_[event.shard];
  at_least = std::max(at_least, event.version);
}

void ExchangeProbe::on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) {
  const auto node = pending_exchanges_.extract(event.exchange);
  const auto seen = [&] { return text(event.exchange, 0, context.self) + " and its others"; };
  look(Promise::one_answer, !node.empty(), seen);
  const auto& pending_exchange = node.mapped();
  const auto& parts = pending_exchange.parts;
  look(Promise::one_answer, std::all_of(parts.begin(), parts.end(), [](const Part& p) { return p.seen.has_value(); }),
       seen);
  look(Promise::one_answer,
       event.dropped == std::any_of(parts.begin(), parts.end(), [](const Part& p) { return p.dropped; }),
       [&] { return seen() + (event.dropped ? ": dropped" : ": not dropped"); });
  if (pending_exchange.slot == kUnit) return begin_steps(pending_exchange, context, then);
  take_up(pending_exchange, pending_exchange.shards(), then);
  if (is_lane(pending_exchange.slot)) rest(pending_exchange.slot, pending_exchange.shards(), then);
  if (pending_exchange.slot == kParams) then.apply(copy(kParams, kAnchor));
  if (stopped_) return finish(context.self, then);
  if (waits_for_.erase(event.exchange) == 0 || !waits_for_.empty()) return;
  auto random = context.random();
  compute(context.step, random, then);
}

/// Checks the contents of the slices that an answered exchange gives back.
void ExchangeProbe::take_up(const PendingExchange& pending_exchange, Shards shards, WorkerActions& then) {
  for (ShardId s = 0; s < shards.count; ++s) {
    const Shards slice{shards.first + s, 1};
    const auto& part = pending_exchange.parts[s];
    if (part.refused && pending_exchange.kind == Transfer::push)
      continue;  // infinity, which would spoil the comparison
    if (part.dropped || pending_exchange.kind == Transfer::push) {
      if (pending_exchange.kind == Transfer::pull) continue;  // its content is not specified
      expect_unit(then, pending_exchange.slot, slice);
      kept(part.dropped ? Promise::dropped_unused : Promise::slice_as_sent);
    } else {
      expect(then, pending_exchange.slot, static_cast<double>(*part.seen), slice);
      kept(Promise::slice_as_sent);
    }
  }
}

void ExchangeProbe::on(const Stopped& event, const WorkerContext& context, WorkerActions& then) {
  look(Promise::steps_as_asked, event.step == asked_,
       [&] { return "worker " + std::to_string(context.self) + " stops at " + std::to_string(event.step); });
  look(Promise::stopped_last, !stopped_, [&] { return "worker " + std::to_string(context.self) + " stops twice"; });
  stopped_ = true;
  finish(context.self, then);
}

/// Pushes the errors once all other exchanges have been answered.
void ExchangeProbe::finish(WorkerId self, WorkerActions& then) {
  if (!pending_exchanges_.empty() || std::exchange(finished_, true)) return;
  for (std::uint8_t lane = 0; lane < kLanes; ++lane) leave_rest(staged(lane), {0, shards_}, then);
  fill_unit(then, staged(0));
  begin(Transfer::push, staged(0), {}, true, self, then);
}

// ---- members and deadlines

void ExchangeProbe::on(const MembershipChanged& event, const WorkerContext& context, WorkerActions&) {
  const auto self = context.self;
  look(Promise::started_first, started_, [&] { return "worker " + std::to_string(self) + " hears of members"; });
  const auto& workers = event.membership.workers;
  look(Promise::members_ascend,
       (!epoch_ || event.membership.epoch > *epoch_) && std::binary_search(workers.begin(), workers.end(), self), [&] {
         return "worker " + std::to_string(self) + " hears of members " + std::to_string(event.membership.epoch) +
                " after " + std::to_string(epoch_.value_or(0));
       });
  epoch_ = event.membership.epoch;
}

void ExchangeProbe::set_deadlines(core::Random& random, WorkerActions& then) {
  for (auto some = random.below(3); some > 0; --some) {
    const auto id = next_deadline_++;
    const Duration after = std::chrono::microseconds(random.below(3000));
    then.set_deadline(id, after);
    deadlines_[id] = now() ? std::optional(*now() + after) : std::nullopt;
  }
}

void ExchangeProbe::on(const DeadlinePassed& event, const WorkerContext& context, WorkerActions&) {
  const auto seen = [&] {
    return "deadline " + std::to_string(event.id) + " of worker " + std::to_string(context.self);
  };
  const auto deadline = deadlines_.extract(event.id);
  look(Promise::deadline_once, !deadline.empty(), seen);
  if (deadline.mapped() && now()) look(Promise::deadline_not_early, *now() >= *deadline.mapped(), seen);
}

// ---- between two steps

std::string ExchangeProbe::state() const {
  const std::map<std::uint32_t, Step> at_least(at_least_.begin(), at_least_.end());
  std::map<std::uint32_t, Step> deadlines;
  for (const auto& [id, when] : deadlines_) deadlines.emplace(static_cast<std::uint32_t>(id), 0);
  return write_state({{"stopped", stopped_},
                      {"finished", finished_},
                      {"next", next_},
                      {"next_rest", next_rest_},
                      {"next_deadline", next_deadline_},
                      {"asked", asked_},
                      {"epoch", epoch_.value_or(0)},
                      {"at_least", at_least},
                      {"resting", resting_},
                      {"deadlines", deadlines}});
}

core::Result<void> ExchangeProbe::restore(const std::string& text) {
  std::map<std::uint32_t, Step> at_least, deadlines;
  std::uint64_t epoch = 0;
  if (auto read = read_state(text, {{"stopped", &stopped_},
                                    {"finished", &finished_},
                                    {"next", &next_},
                                    {"next_rest", &next_rest_},
                                    {"next_deadline", &next_deadline_},
                                    {"asked", &asked_},
                                    {"epoch", &epoch},
                                    {"at_least", &at_least},
                                    {"resting", &resting_},
                                    {"deadlines", &deadlines}});
      !read)
    return read;
  started_ = true;
  epoch_ = epoch;
  at_least_ = {at_least.begin(), at_least.end()};
  for (const auto& [id, none] : deadlines) deadlines_[id] = std::nullopt;
  return {};
}

}  // namespace troupe::contract
