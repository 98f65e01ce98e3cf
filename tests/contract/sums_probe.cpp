#include "tests/contract/sums_probe.hpp"

#include <algorithm>

#include "tests/contract/evidence.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/protocol.hpp"

namespace troupe::contract {

using namespace strategies;

namespace {

constexpr Slot kOfAll = staged(0), kOfGroup = staged(1), kOfRoot = staged(2), kRootsGrads = staged(3),
               kOver = staged(4), kPushed = staged(5);

// Exchanges with shards have ids from exchange_id(), far below kFirst. Collectives have these, the same in every step.
constexpr ExchangeId kFirst = ExchangeId{1} << 40;
constexpr ExchangeId kSumOfAll = kFirst, kMeanOfGroup = kFirst + 1, kFromRoot = kFirst + 2, kGradsOfRoot = kFirst + 3,
                     kSumOver = kFirst + 4, kAllGrads = kFirst + 5, kFirstBucket = kFirst + 16;

bool collective(ExchangeId id) { return id >= kFirst; }

/// The group of `self`, ascending: members shuffled alike on all workers, in groups of two or three (the last may be one).
Group group_of(WorkerId self, std::vector<WorkerId> members, core::Random random) {
  for (auto left = members.size(); left > 1; --left) std::swap(members[left - 1], members[random.below(left)]);
  for (std::size_t begin = 0; begin < members.size();) {
    const auto size = std::min<std::size_t>(2 + random.below(2), members.size() - begin);
    Group group(members.begin() + static_cast<std::ptrdiff_t>(begin),
                members.begin() + static_cast<std::ptrdiff_t>(begin + size));
    std::sort(group.begin(), group.end());
    if (std::binary_search(group.begin(), group.end(), self)) return group;
    begin += size;
  }
  return {self};
}

}  // namespace

double SumsProbe::number_of(WorkerId worker) const { return 1 + static_cast<double>(mix(worker, round_, 5) % 7); }

void SumsProbe::on(const Started& event, const WorkerContext&, WorkerActions& then) {
  round_ = event.step;
  begin_evidence(then);
  waits_for_.insert(exchange_id(next_push_, true));
  then.pull(exchange_id(next_push_++, true), kUnit);
}

void SumsProbe::on(const BucketReady& event, const WorkerContext&, WorkerActions& then) {
  ++buckets_;
  const auto id = kFirstBucket + static_cast<ExchangeId>(event.bucket);
  waits_for_.insert(id);
  in_flight_.insert(id);
  then.reduce(id, kGrads, ReduceOp::mean, event.bucket);
}

void SumsProbe::on(const StepDone&, const WorkerContext& context, WorkerActions& then) { begin_round(context, then); }

void SumsProbe::begin_round(const WorkerContext& context, WorkerActions& then) {
  waits_ = true;
  round_ = context.step;
  auto random = context.shared_random(round_);
  const auto& members = context.membership.workers;
  group_ = group_of(context.self, members, random);
  root_ = members[random.below(members.size())];
  compares_ = false;
  const auto add = [&](ExchangeId id) {
    in_flight_.insert(id);
    if (id != kSumOver) waits_for_.insert(id);
  };
  if (in_flight_.contains(kSumOver)) waits_for_.insert(kSumOver);
  if (std::exchange(buckets_, 0) == 0) add(kAllGrads), then.reduce(kAllGrads, kGrads, ReduceOp::mean);
  fill_with(then, kOfAll, number_of(context.self));
  fill_with(then, kOfGroup, number_of(context.self));
  fill_with(then, kOfRoot, number_of(context.self));
  const auto turn = random.below(3);
  for (std::uint64_t k = 0; k < 3; ++k) {
    switch ((turn + k) % 3) {
      case 0: add(kSumOfAll), then.reduce(kSumOfAll, kOfAll, ReduceOp::sum); break;
      case 1: add(kMeanOfGroup), then.reduce(kMeanOfGroup, kOfGroup, ReduceOp::mean, -1, group_); break;
      default: add(kFromRoot), then.broadcast(kFromRoot, kOfRoot, root_);
    }
  }
  push(then);
}

void SumsProbe::push(WorkerActions& then) {
  fill_unit(then, kPushed);
  const auto id = exchange_id(next_push_++, true);
  waits_for_.insert(id);
  then.push(id, kPushed);
}

void SumsProbe::on(const Replied& event, const WorkerContext&, WorkerActions&) {
  versions_[event.shard] = event.version;
}

void SumsProbe::on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) {
  if (collective(event.exchange))
    look(Promise::one_answer, in_flight_.erase(event.exchange) == 1,
         [&] { return "collective " + std::to_string(event.exchange) + " of worker " + std::to_string(context.self); });
  if (event.exchange == kSumOver) {
    expect(then, kOver, over_step_);
    kept(Promise::collective_of_the_group);
  }
  if (event.exchange == exchange_id(0, true)) {
    for (const auto& [shard, version] : versions_) unit_is_of(then, version, {shard, 1});
    unit_is_here(then);
  }
  waits_for_.erase(event.exchange);
  if (!waits_for_.empty() || (stopped_ && !in_flight_.empty())) return;
  if (stopped_) {
    if (!std::exchange(finished_, true)) push(then);
    return;
  }
  if (!waits_) return;  // StepDone comes next
  if (event.exchange == exchange_id(0, true)) return compute(then);
  end_round(context, then);
}

void SumsProbe::end_round(const WorkerContext& context, WorkerActions& then) {
  const auto& members = context.membership.workers;
  if (!std::exchange(compares_, true)) {
    double all = 0, mine = 0;
    for (const auto worker : members) all += number_of(worker);
    for (const auto worker : group_) mine += number_of(worker);
    expect(then, kOfAll, all);
    fill_with(then, kPushed, mine);
    then.apply(scale(kPushed, 1 / static_cast<float>(group_.size())));
    expect_same(then, kOfGroup, kPushed);
    kept(Promise::collective_of_the_group);
    expect(then, kOfRoot, number_of(root_));
    kept(Promise::collective_root);
    then.apply(copy(kRootsGrads, kGrads));
    waits_for_.insert(kGradsOfRoot);
    in_flight_.insert(kGradsOfRoot);
    return then.broadcast(kGradsOfRoot, kRootsGrads, root_);
  }
  expect_same(then, kRootsGrads, kGrads);
  kept(Promise::collective_equal);
  over_step_ = 0;
  for (const auto worker : members) over_step_ += number_of(worker);
  fill_with(then, kOver, number_of(context.self));
  in_flight_.insert(kSumOver);
  then.reduce(kSumOver, kOver, ReduceOp::sum);
  compute(then);
}

void SumsProbe::compute(WorkerActions& then) {
  waits_ = false;
  then.compute();
}

void SumsProbe::on(const Stopped&, const WorkerContext&, WorkerActions& then) {
  stopped_ = true;
  if (waits_for_.empty() && in_flight_.empty() && !std::exchange(finished_, true)) push(then);
}

}  // namespace troupe::contract
