#include "sim/server.hpp"

#include <algorithm>

#include "sim/cluster/kernel_costs.hpp"
#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

using strategies::RequestId;

namespace {

/// A request's id contains its packet's index: ids ascend, and an answer finds its packet without a search.
constexpr unsigned kPacketBits = 24;
constexpr RequestId id_of(std::uint64_t number, std::uint32_t packet) { return number << kPacketBits | packet; }
constexpr std::uint32_t packet_of(RequestId id) { return static_cast<std::uint32_t>(id & ((1U << kPacketBits) - 1)); }

}  // namespace

Server::Server(World& world, strategies::ShardId self)
    : world_(world),
      self_(self),
      floats_(world.shard_floats(self)),
      host_(world.run.strategy->server(), *this, {.self = self, .membership = world.membership}) {}

Duration Server::now() const { return std::max(world_.queue.now(), free_); }

void Server::work(Duration time) {
  free_ = later(now(), time);
  busy_ += time;
}

void Server::receive(std::uint32_t index) {
  auto& packet = world_.network[index];
  auto& worker = *world_.workers[packet.worker];
  const auto& members = world_.membership.workers;
  if (!std::binary_search(members.begin(), members.end(), packet.worker) || !worker.speaks_as(packet.life))
    return worker.unheard(index);
  const auto stood = now() - world_.queue.now();
  work(world_.cluster.server.per_request);
  auto request = packet.request;
  request.id = id_of(++requests_, index);
  const auto refused = host_.totals().refused;
  host_.request(request, stood + packet.line);
  if (world_.gradients && request.kind != strategies::Transfer::pull)
    look_at_push(request.worker, host_.totals().refused > refused);
}

void Server::look_at_push(strategies::WorkerId worker, bool refused) {
  auto& bad = bad_pushes_.try_emplace(worker, world_.gradients->max_bad_updates()).first->second;
  refused ? bad.bad() : bad.good();
  if (bad.too_many()) world_.good(core::fail(core::Errc::diverged, experiment::bad_push(worker, self_, bad)));
}

bool Server::usable(RequestId payload) const {
  if (!world_.gradients) return true;
  return core::host_kernels().all_within(world_.gradients->memory().payload(self_, packet_of(payload)),
                                         core::kLargestUsable);
}

void Server::run(const strategies::KernelCall& call, RequestId payload) {
  work(Duration{world_.cluster.server.memory.of(bytes_touched(call, floats_))});
  if (!world_.gradients) return;
  const auto packet = packet_of(payload);
  world_.gradients->memory().run_at_shard(self_, call, payload == 0 ? nullptr : &packet);
}

void Server::reply(const strategies::ShardReply& reply) {
  const auto index = packet_of(reply.request);
  auto& packet = world_.network[index];
  const auto kind = packet.request.kind;
  packet.bytes = kind == strategies::Transfer::push ? 0 : floats_ * world_.run.bytes_back(packet.rounding);
  packet.line = Duration{0};
  packet.kind = PacketKind::reply;
  std::swap(packet.from, packet.to);
  packet.reply = reply;
  world_.network.send(index, now());
}

void Server::set_deadline(strategies::DeadlineId id, Duration after) {
  world_.queue.schedule(now() + after, EventKind::server_deadline, self_, id);
}

}  // namespace troupe::sim
