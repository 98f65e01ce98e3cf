#include "strategies/host/server_host.hpp"

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe::strategies {

void ServerRule::refused(const Request& request, const ServerContext& context, ServerActions& then) {
  then.apply(fill(kPayload, 0), request.id);
  on(request, context, then);
}

ServerHost::ServerHost(std::unique_ptr<ServerRule> rule, ServerPort& port, ServerHostOptions options,
                       ServerObserver* observer)
    : rule_(std::move(rule)),
      port_(port),
      options_(std::move(options)),
      observer_(observer),
      version_(options_.version) {}

void ServerHost::request(const Request& request, Duration queued) {
  const auto text = "server host: request " + std::to_string(request.id);
  if (request.id == 0) throw std::logic_error(text + ": ids begin at 1");
  if (request.version > version_)
    throw std::logic_error(text + " has seen a version that shard " + std::to_string(options_.self) + " never had");
  const auto now = port_.now();
  const auto [open, fresh] = open_.emplace(
      request.id, Open{.request = request, .queued = queued, .arrived = now, .staleness = version_ - request.version});
  if (!fresh) throw std::logic_error(text + " arrived twice");
  ++totals_.requests;
  last_ = request.worker;
  const bool refused = request.kind != Transfer::pull && !port_.usable(request.id);
  open->second.refused = refused;
  tell(request, now, refused);
  last_.reset();
  const auto left = open_.find(request.id);
  if (left != open_.end() && !left->second.held) {
    throw std::logic_error("strategy: a request was neither answered nor held nor dropped");
  }
}

void ServerHost::membership_changed(const Membership& membership) {
  options_.membership = membership;
  tell(MembershipChanged{membership}, port_.now());
}

void ServerHost::deadline_passed(DeadlineId id) { tell(DeadlinePassed{id}, port_.now()); }

template <class Event>
void ServerHost::tell(const Event& event, Duration now, bool refused) {
  if (telling_) throw std::logic_error("server host: called from inside a port's call");
  telling_ = true;
  now_ = now;
  if (observer_) observer_->consumed(event);
  const ServerContext context{options_.self, options_.membership, version_};
  actions_.clear();
  if constexpr (std::is_same_v<Event, Request>) {
    if (refused) {
      ++totals_.refused;
      if (observer_) observer_->refused(event);
      rule_->refused(event, context, actions_);
    } else {
      rule_->on(event, context, actions_);
    }
  } else {
    rule_->on(event, context, actions_);
  }
  for (const auto& action : actions_.list()) std::visit([this](const auto& a) { execute(a); }, action);
  telling_ = false;
}

void ServerHost::execute(const Apply& action) {
  if (action.requests.empty()) {
    if (touches(action.call, kPayload)) throw std::logic_error("strategy: Apply names a payload but no request");
    port_.run(action.call, 0);
  } else {
    for (const auto id : action.requests) run(action.call, id);
  }
  if (writes(action.call, kCenter)) ++version_;
}

/// The first kernel on a request fixes its staleness: later ones would count the update of this request.
void ServerHost::run(const KernelCall& call, RequestId id) {
  auto& open = opened(id);
  if (!std::exchange(open.worked_on, true)) open.staleness = version_ - open.request.version;
  port_.run(call, id);
}

void ServerHost::execute(const Reply& action) { answer(action.request, action.min_clock, false); }

void ServerHost::execute(const Hold& action) { opened(action.request).held = true; }

void ServerHost::execute(const Drop& action) {
  const auto& request = opened(action.request).request;
  ++totals_.dropped;
  if (observer_) observer_->dropped(request, action.why);
  answer(action.request, 0, true);
}

void ServerHost::execute(const SetDeadline& action) { port_.set_deadline(action.id, action.after); }

ServerHost::Open& ServerHost::opened(RequestId id) {
  const auto found = open_.find(id);
  if (found == open_.end())
    throw std::logic_error("strategy: request " + std::to_string(id) + " is not open: answered before?");
  return found->second;
}

void ServerHost::answer(RequestId id, Step min_clock, bool dropped) {
  const Open& open = opened(id);
  const ShardReply reply{.request = id,
                         .worker = open.request.worker,
                         .shard = options_.self,
                         .exchange = open.request.exchange,
                         .version = version_,
                         .staleness = open.staleness,
                         .min_clock = min_clock,
                         .dropped = dropped,
                         .refused = open.refused,
                         .queued = open.queued,
                         .held = now_ - open.arrived,
                         .last = last_};
  open_.erase(id);
  ++totals_.replies;
  port_.reply(reply);
}

}  // namespace troupe::strategies
