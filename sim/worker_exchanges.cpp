// A phantom worker's exchanges: with shards, in groups, and peer messages.
#include <algorithm>

#include "sim/coordinator.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

std::uint32_t Worker::packet_to(HostId host, PacketKind kind, std::uint64_t bytes) {
  const auto index = world_.network.take();
  auto& packet = world_.network[index];
  packet.bytes = bytes;
  packet.from = placement_.host;
  packet.to = host;
  packet.line = Duration{0};
  packet.kind = kind;
  return index;
}

// ---- with shards

void Worker::send(const strategies::ShardRequest& request) {
  const auto floats = world_.shard_floats(request.shard);
  const auto kind = request.request.kind;
  const auto there = kind == strategies::Transfer::pull ? 0 : floats * world_.run.bytes_there(request.rounding);
  const auto back = kind == strategies::Transfer::push ? 0 : floats * world_.run.bytes_back(request.rounding);
  const auto index = packet_to(world_.cluster.servers[request.shard], PacketKind::request, there);
  auto& packet = world_.network[index];
  packet.shard = request.shard;
  packet.worker = self_;
  packet.life = life_;
  packet.slot = request.slot;
  packet.request = request.request;
  packet.rounding = request.rounding;
  account_.bytes += there + back;
  if (world_.gradients) world_.gradients->memory().lend(index, self_, request.slot);
  world_.network.send(index, now());
}

void Worker::answered(std::uint32_t index) {
  const auto& packet = world_.network[index];
  auto reply = packet.reply;
  reply.queued += packet.line;
  const bool mine = host_ && packet.life == life_;
  if (world_.gradients) world_.gradients->memory().give_back(index);
  world_.network.release(index);
  if (mine) host_->replied(reply);
  if (world_.network.in_flight() == 0) world_.coordinator->silent();
}

void Worker::unheard(std::uint32_t index) {
  if (world_.gradients) world_.gradients->memory().give_back(index);
  world_.network.release(index);
  if (world_.network.in_flight() == 0) world_.coordinator->silent();
}

// ---- in groups

void Worker::reduce(strategies::Step step, const strategies::Reduce& reduce) {
  collective(step, reduce.id, reduce.group,
             {.slot = reduce.slot, .bucket = reduce.bucket, .op = reduce.op, .rounding = reduce.rounding});
}

void Worker::broadcast(strategies::Step step, const strategies::Broadcast& broadcast) {
  collective(step, broadcast.id, broadcast.group, {.slot = broadcast.slot, .broadcast = true, .root = broadcast.root});
}

void Worker::collective(strategies::Step step, strategies::ExchangeId id, std::span<const strategies::WorkerId> group,
                        const CollectiveTask& task) {
  if (group.empty()) group = host_->membership().workers;
  if (!std::equal(group.begin(), group.end(), group_.begin(), group_.end())) {
    group_.assign(group.begin(), group.end());
    known_bytes_.clear();
  }
  Vector vector{.floats = world_.bucket_floats(task.bucket), .rounds = task.rounding != strategies::Rounding::none};
  if (world_.cluster.tensor_by_tensor) {
    const auto buckets = static_cast<std::uint32_t>(task.bucket < 0 ? 1 : world_.cluster.buckets);
    vector.parts = (world_.run.tensors + buckets - 1) / buckets;
  }
  account_.bytes += bytes_of(task, vector);
  world_.collectives.ask(self_, now(), step, id, group, task, vector);
}

std::uint64_t Worker::bytes_of(const CollectiveTask& task, const Vector& vector) {
  const auto root = task.broadcast ? std::optional(task.root) : std::nullopt;
  const auto known = std::ranges::find_if(known_bytes_, [&](const KnownBytes& one) {
    return one.floats == vector.floats && one.rounds == vector.rounds && one.root == root;
  });
  if (known != known_bytes_.end()) return known->bytes;
  const auto rank_of = [&](strategies::WorkerId worker) {
    return static_cast<std::size_t>(std::ranges::find(group_, worker) - group_.begin());
  };
  std::vector<HostId> hosts;
  for (const auto member : group_) hosts.push_back(world_.cluster.workers[member].host);
  const auto bytes = world_.collectives.costs().bytes(vector, hosts, rank_of(self_),
                                                      root ? std::optional(rank_of(*root)) : std::nullopt);
  known_bytes_.push_back({vector.floats, vector.rounds, root, bytes});
  return bytes;
}

void Worker::reduced(const PendingCollective& collective, Duration waited) {
  if (host_) host_->reduced(collective.id, waited, collective.last);
}

// ---- peer messages

bool Worker::send(const strategies::SendPeer& message) {
  auto& peer = *world_.workers[message.to];
  if (!world_.peers.may_write(self_, message.to) || !mailbox_.take_credit(message.to)) return false;
  auto* const memory = world_.gradients ? &world_.gradients->memory() : nullptr;
  const auto numbers = memory ? memory->write_peer_message(self_, message.slot) : 0;
  const auto bytes = world_.run.floats * sizeof(float);  // a peer message is never rounded
  const auto index = packet_to(peer.placement_.host, PacketKind::peer_message, bytes);
  auto& packet = world_.network[index];
  packet.worker = message.to;
  packet.life = peer.life_;
  packet.peer_message = {.from = self_, .from_life = life_, .memory = numbers, .weight = message.weight};
  account_.bytes += bytes;
  ++world_.peer_messages;
  world_.network.send(index, now());
  return true;
}

void Worker::peer_message(std::uint32_t index) {
  const auto& packet = world_.network[index];
  const auto peer_message = packet.peer_message;
  const bool mine = host_ && packet.life == life_;
  world_.network.release(index);
  --world_.peer_messages;
  if (mine) {
    const auto slot = mailbox_.receive({peer_message.from, peer_message.from_life, peer_message.weight});
    if (world_.gradients) world_.gradients->memory().mount(self_, slot, peer_message.memory);
    host_->peer_message_arrived({.from = peer_message.from, .weight = peer_message.weight, .slot = slot});
  } else {
    world_.lost_weight += peer_message.weight;
    if (world_.gradients) world_.gradients->memory().throw_away(peer_message.memory);
  }
  if (world_.peer_messages == 0) world_.coordinator->peer_messages_arrived();
}

void Worker::add_unread(std::vector<UnreadMessage>& peer_messages) const {
  for (const auto& [slot, peer_message] : mailbox_.unread())
    peer_messages.push_back({self_, slot, peer_message.weight});
}

void Worker::release(strategies::Slot slot) {
  const auto peer_message = mailbox_.release(slot);
  if (world_.gradients) world_.gradients->memory().dismount(self_, slot);
  const auto index = packet_to(world_.workers[peer_message.from]->placement_.host, PacketKind::credit, 0);
  auto& packet = world_.network[index];
  packet.worker = peer_message.from;
  packet.life = peer_message.life;
  packet.peer_message = {.from = self_};
  world_.network.send(index, now());
}

void Worker::credit(std::uint32_t index) {
  const auto& packet = world_.network[index];
  if (packet.life == life_) mailbox_.credit_returned(packet.peer_message.from);
  world_.network.release(index);
}

}  // namespace troupe::sim
