#include "tests/contract/shard_probe.hpp"

#include <algorithm>
#include <chrono>

#include "tests/contract/evidence.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/protocol.hpp"

namespace troupe::contract {

using namespace strategies;

namespace {

bool contains(const std::vector<WorkerId>& workers, WorkerId worker) {
  return std::binary_search(workers.begin(), workers.end(), worker);
}

std::string asked_by(const Request& request, ShardId self) {
  return "shard " + std::to_string(self) + " hears exchange " + std::to_string(request.exchange) + " of worker " +
         std::to_string(request.worker);
}

/// Long enough for other requests to overtake some of the held ones.
Duration patience(const Request& request) {
  return std::chrono::microseconds(100 + mix(request.worker, request.exchange, 7) % 2000);
}

}  // namespace

void ShardProbe::look_at(const Request& request, const ServerContext& context) {
  const auto worker = request.worker;
  if (!members_) members_ = context.membership;
  look(Promise::members_ascend, *members_ == context.membership,
       [&] { return asked_by(request, context.self) + ", and is told of members that no news spoke of"; });
  const bool member = contains(members_->workers, worker);
  if (lost_.contains(worker) || !lost_.empty())
    look(Promise::lost_not_heard, !lost_.contains(worker), [&] { return asked_by(request, context.self); });
  if (!latest_.contains(worker))
    look(Promise::newcomer_announced, member, [&] { return asked_by(request, context.self); });
  const auto before = latest_.find(worker);
  look(Promise::requests_in_order,
       before == latest_.end() || (before->second < request.exchange && clocks_[worker] <= request.clock),
       [&] { return asked_by(request, context.self) + " after " + std::to_string(before->second); });
  if (back_.erase(worker) > 0) returned();
  latest_[worker] = request.exchange;
  clocks_[worker] = request.clock;
}

void ShardProbe::on(const Request& request, const ServerContext& context, ServerActions& then) {
  look_at(request, context);
  version_ = context.version;
  if (version_ == 0) begin_evidence(then), ++version_;
  const auto fate = fate_of(request.worker, request.exchange, context.self, request.kind);
  switch (fate) {
    case Fate::refused: throw Broken(Promise::unusable_refused, asked_by(request, context.self) + " by on()");
    case Fate::answered:
      work_on(request, then);
      answer({request, true}, context.self, then);
      break;
    case Fate::dropped: then.drop(request.id, "a probe drops some"); break;
    case Fate::held:
    case Fate::put_off:
      if (fate == Fate::held) work_on(request, then);
      held_.emplace(request.id, Held{request, fate == Fate::held});
      then.hold(request.id);
      then.set_deadline(request.id, patience(request));
      deadlines_[request.id] = now() ? std::optional(*now() + patience(request)) : std::nullopt;
  }
  if (mix(request.exchange, request.worker, 3) % 4 == 0) release_all(context.self, then);
  shard_is_at(context.self, version_);
}

/// Answers with the centre and does not add the payload: with a number of it the centre would not be a multiple of u.
void ShardProbe::refused(const Request& request, const ServerContext& context, ServerActions& then) {
  look_at(request, context);
  look(Promise::unusable_refused,
       fate_of(request.worker, request.exchange, context.self, request.kind) == Fate::refused,
       [&] { return asked_by(request, context.self) + " by refused()"; });
  version_ = context.version;
  if (version_ == 0) begin_evidence(then), ++version_;
  if (request.kind != Transfer::push) then.apply(copy(kPayload, kCenter), request.id);
  then.reply(request.id, clock_of(request.exchange, context.self));
  shard_is_at(context.self, version_);
}

void ShardProbe::work_on(const Request& request, ServerActions& then) {
  if (request.kind == Transfer::pull) return;
  then.apply(axpy(kCenter, 1, kPayload), request.id);
  ++version_;
}

void ShardProbe::answer(const Held& held, ShardId self, ServerActions& then) {
  const auto& request = held.request;
  if (!held.worked_on) work_on(request, then);
  if (request.kind != Transfer::push) then.apply(copy(kPayload, kCenter), request.id);
  then.reply(request.id, clock_of(request.exchange, self));
}

/// Answers the held requests, the latest first: answers have no order.
void ShardProbe::release_all(ShardId self, ServerActions& then) {
  for (auto held = held_.rbegin(); held != held_.rend(); ++held) answer(held->second, self, then);
  held_.clear();
}

void ShardProbe::on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) {
  const auto& now = event.membership;
  look(Promise::members_ascend, (!members_ || now.epoch > members_->epoch) && context.membership == now, [&] {
    return "shard " + std::to_string(context.self) + " hears of members " + std::to_string(now.epoch) + " after " +
           std::to_string(members_ ? members_->epoch : 0);
  });
  for (const auto worker : members_ ? members_->workers : std::vector<WorkerId>{}) {
    if (contains(now.workers, worker)) continue;
    lost_.insert(worker);
    back_.erase(worker);
    latest_.erase(worker);
    clocks_.erase(worker);
  }
  for (const auto worker : now.workers)
    if (lost_.erase(worker) > 0) back_.insert(worker);
  members_ = now;
  version_ = context.version;
  // Held requests of lost workers: some are dropped, the others are answered without a receiver.
  std::erase_if(held_, [&](const auto& held) {
    if (!lost_.contains(held.second.request.worker) || held.first % 2 == 0) return false;
    then.drop(held.first, "its worker is lost");
    return true;
  });
}

void ShardProbe::on(const DeadlinePassed& event, const ServerContext& context, ServerActions& then) {
  const auto deadline = deadlines_.extract(event.id);
  look(Promise::deadline_once, !deadline.empty(),
       [&] { return "deadline " + std::to_string(event.id) + " of shard " + std::to_string(context.self); });
  if (deadline.mapped() && contract::now())
    look(Promise::deadline_not_early, *contract::now() >= *deadline.mapped(),
         [&] { return "deadline " + std::to_string(event.id) + " of shard " + std::to_string(context.self); });
  const auto held = held_.extract(event.id);
  if (held.empty()) return;
  version_ = context.version;
  answer(held.mapped(), context.self, then);
  shard_is_at(context.self, version_);
}

std::string ShardProbe::state() const {
  std::map<std::uint32_t, Step> latest(latest_.begin(), latest_.end()), clocks(clocks_.begin(), clocks_.end());
  std::map<std::uint32_t, Step> deadlines;
  for (const auto& [id, when] : deadlines_) deadlines.emplace(static_cast<std::uint32_t>(id), 0);
  const auto members = members_.value_or(Membership{});
  return write_state({{"known", members_.has_value()},
                      {"epoch", members.epoch},
                      {"members", members.workers},
                      {"lost", std::vector<WorkerId>(lost_.begin(), lost_.end())},
                      {"latest", latest},
                      {"clocks", clocks},
                      {"deadlines", deadlines}});
}

core::Result<void> ShardProbe::restore(const std::string& text) {
  bool known = false;
  Membership members;
  std::vector<WorkerId> lost;
  std::map<std::uint32_t, Step> latest, clocks, deadlines;
  if (auto read = read_state(text, {{"known", &known},
                                    {"epoch", &members.epoch},
                                    {"members", &members.workers},
                                    {"lost", &lost},
                                    {"latest", &latest},
                                    {"clocks", &clocks},
                                    {"deadlines", &deadlines}});
      !read)
    return read;
  if (known) members_ = members;
  lost_ = {lost.begin(), lost.end()};
  latest_ = {latest.begin(), latest.end()};
  clocks_ = {clocks.begin(), clocks.end()};
  for (const auto& [id, none] : deadlines) deadlines_[id] = std::nullopt;
  return {};
}

}  // namespace troupe::contract
