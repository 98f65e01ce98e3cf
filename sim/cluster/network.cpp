#include "sim/cluster/network.hpp"

#include <algorithm>

namespace troupe::sim {

Network::Network(EventQueue& queue, const Cluster& cluster)
    : queue_(queue),
      speed_(cluster.network),
      out_(cluster.hosts.size()),
      in_(cluster.hosts.size()),
      local_(cluster.hosts.size()),
      use_(cluster.hosts.size()) {
  for (const auto& host : cluster.hosts) cards_.push_back(host.card);
}

void Network::send(std::uint32_t packet, Duration at) {
  if (at > queue_.now()) return queue_.schedule(at, EventKind::packet_leaves, packet);
  leave(packet);
}

void Network::fetch(std::uint32_t packet) const noexcept {
  const auto* lines = reinterpret_cast<const char*>(&packets_[packet]);
  __builtin_prefetch(lines);
  __builtin_prefetch(lines + 64);
}

void Network::leave(std::uint32_t index) {
  auto& packet = packets_[index];
  const auto now = queue_.now();
  if (packet.from == packet.to) {
    auto& line = local_[packet.from];
    const auto begins = std::max(now, line.free);
    packet.line += begins - now;
    line.free = begins + Duration{speed_.local.of(packet.bytes)};
    return queue_.schedule(line.free + speed_.local_latency, EventKind::packet_here, index);
  }
  auto& line = out_[packet.from];
  const auto begins = std::max(now, line.free);
  if (packet.kind == PacketKind::reply) packet.line += begins - now;
  const Duration bytes{cards_[packet.from].of(packet.bytes)};
  line.free = begins + speed_.per_message + bytes;
  use_[packet.from].out += speed_.per_message + bytes;
  bytes_ += packet.bytes;
  const auto head = begins + speed_.per_message + speed_.latency;
  packet.tail = head + bytes;
  queue_.schedule(head, EventKind::packet_head, index);
}

bool Network::head(std::uint32_t index) {
  auto& packet = packets_[index];
  const auto now = queue_.now();
  auto& line = in_[packet.to];
  const auto begins = std::max(now, line.free);
  if (packet.kind == PacketKind::request) packet.line += begins - now;
  const Duration bytes{cards_[packet.to].of(packet.bytes)};
  line.free = begins + bytes;
  use_[packet.to].in += bytes;
  const auto here = std::max(line.free, packet.tail);
  // The message before it may also arrive now, with an event behind this one: a pull must not overtake its push.
  if (here == now && packet.bytes > 0) return true;
  queue_.schedule(here, EventKind::packet_here, index);
  return false;
}

}  // namespace troupe::sim
