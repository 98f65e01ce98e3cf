#include "sim/replay/server.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "sim/replay/describe.hpp"
#include "sim/replay/worker.hpp"

namespace troupe::replay {

using namespace strategies;

namespace {

std::string describe_server_item(const ServerItem& item) {
  return std::visit([](const auto& i) { return describe(i); }, item);
}

}  // namespace

ReplayServer::ReplayServer(Segment& segment, ShardId self, std::vector<ServerItem> items,
                           experiment::ShardMemory memory, Version version)
    : segment_(segment),
      self_(self),
      items_(std::move(items)),
      memory_(std::move(memory)),
      host_(segment.spec().strategy->server(), *this,
            ServerHostOptions{.self = self, .membership = segment.membership(), .version = version}, this) {}

bool ReplayServer::advance() {
  try {
    return take_item();
  } catch (const std::logic_error& impossible) {
    diverge(next_, impossible.what());
  }
}

bool ReplayServer::take_item() {
  if (at_end()) return false;
  const auto& item = items_[next_];
  if (const auto* snapshot = std::get_if<experiment::SnapshotRecord>(&item)) {
    if (segment_.options().same_numbers)
      segment_.check(*snapshot, memory_.view(snapshot->slot), fmt::format("shard {}, event {}", self_, next_), next_);
    ++next_;
    return true;
  }
  return std::visit([this](const auto& event) { return feed(event); }, std::get<ServerEvent>(item));
}

std::string ReplayServer::waits_for() const {
  return fmt::format("shard {}, event {} of {}: {}", self_, next_, items_.size(), describe_server_item(items_[next_]));
}

std::optional<WorkerId> ReplayServer::needs() const {
  const auto* const event = at_end() ? nullptr : std::get_if<ServerEvent>(&items_[next_]);
  const auto* const request = event == nullptr ? nullptr : std::get_if<Request>(event);
  return request == nullptr ? std::nullopt : std::optional(request->worker);
}

bool ReplayServer::feed(const Request& event) {
  const auto found = sent_.find({event.worker, event.exchange});
  if (found == sent_.end()) return false;
  auto sent = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) sent_.erase(found);
  sent.request.id = event.id;
  const auto request = sent.request;
  payloads_.emplace(event.id, std::move(sent));
  host_.request(request);
  return true;
}

bool ReplayServer::feed(const MembershipChanged& event) {
  host_.membership_changed(event.membership);
  return true;
}

bool ReplayServer::feed(const DeadlinePassed& event) {
  host_.deadline_passed(event.id);
  return true;
}

void ReplayServer::consumed(const ServerEvent& event) {
  auto expected = std::get<ServerEvent>(items_[next_]);
  if (!segment_.options().same_numbers) {
    const auto* now = std::get_if<Request>(&event);
    auto* then = std::get_if<Request>(&expected);
    if (now && then) then->lr = now->lr;
  }
  if (!(expected == event)) {
    diverge(next_, fmt::format("the replay says {}; the recording says {}", describe(event),
                               describe_server_item(items_[next_])));
  }
  ++next_;
}

void ReplayServer::sent(const ShardRequest& part, const experiment::BorrowedView& slice) {
  const auto& request = part.request;
  const bool reads = request.kind != Transfer::pull;
  auto here = travels(request) ? segment_.wire().room(slice.data, position(), reads, part.rounding) : slice;
  sent_[{request.worker, request.exchange}].push_back({request, slice, std::move(here), part.rounding});
}

bool ReplayServer::travels(const Request& request) const { return segment_.wire().is_between(request.worker, self_); }

Position ReplayServer::position() const {
  return core::slice_of(segment_.arena_floats(), self_, segment_.servers()).offset;
}

void ReplayServer::diverge(std::size_t item, const std::string& what) const {
  throw Diverged(fmt::format("{}: shard {}, event {}: {}", segment_.recording().path, self_, item, what), true, self_,
                 item);
}

bool ReplayServer::usable(RequestId payload) const {
  return segment_.kernels().all_within(payloads_.at(payload).here.data, core::kLargestUsable);
}

void ReplayServer::run(const KernelCall& call, RequestId payload) {
  memory_.run(call, payload == 0 ? core::Span{} : payloads_.at(payload).here.data);
}

void ReplayServer::reply(const ShardReply& reply) {
  const auto& done = payloads_.at(reply.request);
  if (travels(done.request) && done.request.kind != Transfer::push)
    segment_.wire().send_back(done.here.data, done.slice.data, position(), done.rounding);
  payloads_.erase(reply.request);
  if (auto* worker = segment_.worker(reply.worker)) worker->answered(reply);
}

}  // namespace troupe::replay
