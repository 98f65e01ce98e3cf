#include "strategies/host/server_host.hpp"

#include <stdexcept>
#include <string>

namespace troupe::strategies {

ServerHost::ServerHost(std::unique_ptr<ServerHalf> half, ServerPort& port, ServerHostOptions options, ServerObserver* observer)
    : half_(std::move(half)), port_(port), options_(std::move(options)), observer_(observer) {}

void ServerHost::request(const Request& request) {
  ++totals_.requests;
  const Open opened{.request = request, .arrived = port_.now(), .staleness = version_ - request.version};
  if (!open_.emplace(request.id, opened).second) {
    throw std::logic_error("server host: request " + std::to_string(request.id) + " arrived twice");
  }
  tell(request);
  const auto left = open_.find(request.id);
  if (left != open_.end() && !left->second.held_by_half) {
    throw std::logic_error("strategy: a request was neither answered nor held nor dropped");
  }
}

void ServerHost::membership_changed(const Membership& membership) {
  options_.membership = membership;
  tell(MembershipChanged{membership});
}

void ServerHost::deadline_passed(DeadlineId id) { tell(DeadlinePassed{id}); }

template <class Event>
void ServerHost::tell(const Event& event) {
  if (observer_) observer_->consumed(event);
  const ServerContext context{options_.self, options_.membership, version_};
  actions_.clear();
  half_->on(event, context, actions_);
  for (const auto& action : actions_.list()) std::visit([this](const auto& a) { execute(a); }, action);
}

void ServerHost::execute(const Apply& action) {
  if (action.requests.empty()) {
    port_.run(action.call, 0);
  } else {
    for (const auto id : action.requests) run(action.call, id);
  }
  if (writes(action.call, kCenter)) ++version_;
}

void ServerHost::run(const KernelCall& call, RequestId id) {
  auto& request = opened(id);
  request.held = port_.now() - request.arrived;
  request.staleness = version_ - request.request.version;
  port_.run(call, id);
}

void ServerHost::execute(const Reply& action) { answer(action.request, action.min_clock, false); }

void ServerHost::execute(const Hold& action) { opened(action.request).held_by_half = true; }

void ServerHost::execute(const Drop& action) {
  ++totals_.dropped;
  if (observer_) observer_->dropped(opened(action.request).request, action.why);
  answer(action.request, 0, true);
}

void ServerHost::execute(const SetDeadline& action) { port_.set_deadline(action.id, action.after); }

ServerHost::Open& ServerHost::opened(RequestId id) {
  const auto found = open_.find(id);
  if (found == open_.end()) throw std::logic_error("strategy: request " + std::to_string(id) + " is not open: answered before?");
  return found->second;
}

void ServerHost::answer(RequestId id, Step min_clock, bool dropped) {
  const Open& open = opened(id);
  const ShardReply reply{.request = id, .worker = open.request.worker, .shard = options_.self, .exchange = open.request.exchange,
                         .version = version_, .staleness = open.staleness, .min_clock = min_clock, .dropped = dropped,
                         .held = open.held};
  open_.erase(id);
  ++totals_.replies;
  port_.reply(reply);
}

}  // namespace troupe::strategies
