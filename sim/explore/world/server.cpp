#include "sim/explore/world/server.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {

Server::Server(VirtualRun& run, ShardId self, const Strategy& strategy, const Membership& membership,
               core::ConstSpan start)
    : run_(run),
      self_(self),
      memory_(start.size()),
      host_(strategy.server(), *this, {.self = self, .membership = membership}, this) {
  for (const auto rank : membership.workers) members_.emplace(rank, 0);
  memory_.add(kCenter);
  for (std::uint8_t k = 0; k < strategy.needs().server_states; ++k) memory_.add(server_state(k));
  std::copy(start.begin(), start.end(), memory_.use(kCenter).begin());
  std::copy(start.begin(), start.end(), memory_.use(strategy.needs().model_slot).begin());
}

void Server::heard(const EventQueue::Action& what) {
  if (const auto until = run_.stands_still(true, self_)) return run_.queue().at(*until, [this, what] { heard(what); });
  what();
}

void Server::membership_changed(const Membership& membership, const std::vector<std::uint32_t>& lives) {
  heard([this, membership, lives] {
    members_.clear();
    for (const auto rank : membership.workers) members_.emplace(rank, lives[rank]);
    host_.membership_changed(membership);
  });
}

void Server::receive(Request request, std::shared_ptr<Parcel> payload, Worker& from) {
  heard([this, request, &from, payload = std::move(payload)] { arrive(request, payload, from); });
}

/// A lost worker's late request must not count as its successor's, which has the same rank.
bool Server::is_member(const Worker& worker, WorkerId rank) const {
  const auto known = members_.find(rank);
  return known != members_.end() && known->second == worker.life();
}

void Server::arrive(Request request, const std::shared_ptr<Parcel>& payload, Worker& from) {
  (void)payload->open();  // throws if changed in transit
  if (!is_member(from, request.worker)) return;
  request.id = ++last_request_;
  senders_.emplace(request.id, &from);
  payloads_.emplace(request.id, payload);
  if (request.kind != Transfer::pull && run_.is_bad(self_, pushes_++)) spoil(request.id);
  host_.request(request);
  if (host_.version() < seen_version_) throw Violation("the version of a shard went back");
  seen_version_ = host_.version();
}

void Server::spoil(RequestId request) {
  auto& parcel = *payloads_.at(request);
  const auto contents = parcel.open();
  if (contents.empty()) return;
  spoilt_.emplace(request, std::exchange(contents.front(), std::numeric_limits<float>::infinity()));
  parcel.seal();
}

/// Restores the replaced value unless the rule has overwritten it: the worker's own vector is intact.
void Server::mend(RequestId request, core::Span contents) {
  const auto spoilt = spoilt_.extract(request);
  if (!spoilt.empty() && std::isinf(contents.front())) contents.front() = spoilt.mapped();
}

bool Server::usable(RequestId payload) const {
  return std::ranges::none_of(payloads_.at(payload)->open(),
                              [](float value) { return std::abs(value) > core::kLargestUsable; });
}

Duration Server::now() const { return run_.queue().now(); }

void Server::run(const KernelCall& call, RequestId payload) {
  Parcel* parcel = payload == 0 ? nullptr : payloads_.at(payload).get();
  const auto contents = parcel ? parcel->open() : core::Span{};
  ServerKernel seen{.shard = self_,
                    .call = call,
                    .request = payload,
                    .center_before = {},
                    .payload_before = {},
                    .center = memory_.peek(kCenter),
                    .payload = contents};
  const auto& watch = run_.options().on_server_kernel;
  const auto& invariants = run_.options().invariants;
  const bool watched = watch || !invariants.empty();
  if (watched) {
    seen.center_before.assign(seen.center.begin(), seen.center.end());
    seen.payload_before.assign(contents.begin(), contents.end());
  }
  strategies::run(run_.kernels(), call, [&](Slot slot) { return slot == kPayload ? contents : memory_.use(slot); });
  if (parcel) parcel->seal();
  if (watch) watch(seen);
  for (auto* invariant : invariants) invariant->ran(run_, seen);
}

void Server::reply(const ShardReply& reply) {
  const auto node = payloads_.extract(reply.request);
  if (node.empty()) throw Violation("a server answered a request that it does not have");
  mend(reply.request, node.mapped()->open());  // throws if changed while it was held
  node.mapped()->seal();
  auto& asked = *senders_.extract(reply.request).mapped();
  run_.network().send({Traffic::reply, self_, asked.address()}, Order::any, [&asked, reply] { asked.answered(reply); });
}

void Server::set_deadline(DeadlineId id, Duration after) {
  run_.queue().after(after, [this, id] { heard([this, id] { host_.deadline_passed(id); }); });
}

void Server::consumed(const ServerEvent& event) {
  run_.trace().consumed(self_, event, now());
  for (auto* invariant : run_.options().invariants) invariant->told(run_, self_, event);
}
void Server::dropped(const Request& request, const std::string& why) {
  run_.trace().dropped(request, why);
  for (auto* invariant : run_.options().invariants) invariant->dropped(run_, self_, request);
}
void Server::refused(const Request& request) {
  for (auto* invariant : run_.options().invariants) invariant->refused(run_, self_, request);
}

}  // namespace troupe::explore
