/// Messages in flight between hosts in virtual time: latency, bandwidth, a cost per message, and queues at network cards.
///
/// A host has one network card with one output and one input. Each serves whole messages in order of arrival (FIFO, which keeps a
/// worker's requests to a shard in order). With p the cost per message, L the latency, B_out and B_in the time of the bytes on the
/// sender's and the receiver's card:
///
///   output    begins at b = max(sent, card free), then the card is busy for p + B_out
///   head      reaches the receiver at h = b + p + L
///   input     begins at i = max(h, card free), then the card is busy for B_in
///   here      at max(i + B_in, h + B_out): cut-through, so an empty network takes p + L + max(B_out, B_in)
///
/// A card that receives from slower cards is busy for its own B_in only, so it can receive from several at once. Within a host a message
/// takes the local latency, and its bytes queue for the host's memory; without a local speed memory is lent and takes no time.
/// Collectives do not use this: see sim/cluster/collective_costs.hpp.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/pool.hpp"
#include "strategies/host/port.hpp"

namespace troupe::sim {

/// A peer message in flight, or (field `from` only) the credit that returns.
struct PeerMessage {
  strategies::WorkerId from = 0;
  std::uint32_t from_life = 0;
  std::uint32_t memory = 0;  ///< index of its vector, where gradients are computed
  double weight = 0;
};

enum class PacketKind : std::uint8_t { request, reply, peer_message, credit };

/// A message, reused for its answer. Two cache lines; the network reads only the first.
struct alignas(64) Packet {
  std::uint64_t bytes = 0;
  HostId from = 0;
  HostId to = 0;
  Duration tail{0};                 ///< earliest arrival of its last byte
  Duration line{0};                 ///< time queued at the card of the server's host, or for a host's memory
  strategies::ShardId shard = 0;    ///< request and reply
  strategies::WorkerId worker = 0;  ///< of the request, or the peer message's receiver
  std::uint32_t life = 0;           ///< of that worker: packets for an earlier life are not delivered
  PacketKind kind = PacketKind::request;
  strategies::Slot slot{};  ///< request: the slice of this slot travels
  strategies::Rounding rounding = strategies::Rounding::both;
  union {  // as kind says
    strategies::Request request;
    strategies::ShardReply reply;
    PeerMessage peer_message;
  };
  Packet() noexcept : peer_message{} {}
};
static_assert(sizeof(Packet) == 128);

/// Busy time of one host's card.
struct CardUse {
  Duration out{0};
  Duration in{0};
};

class Network {
 public:
  Network(EventQueue& queue, const Cluster& cluster);

  [[nodiscard]] std::uint32_t take() { return packets_.take(); }
  void release(std::uint32_t packet) { packets_.release(packet); }
  [[nodiscard]] Packet& operator[](std::uint32_t packet) noexcept { return packets_[packet]; }
  void fetch(std::uint32_t packet) const noexcept;  ///< into the cache
  [[nodiscard]] std::size_t in_flight() const noexcept { return packets_.used(); }

  /// Sends at `at`, which is now or later. It ends with packet_here, or with packet_head if head() returns true.
  void send(std::uint32_t packet, Duration at);
  void leave(std::uint32_t packet);               ///< packet_leaves
  [[nodiscard]] bool head(std::uint32_t packet);  ///< packet_head; true: the whole packet has arrived

  [[nodiscard]] const std::vector<CardUse>& use() const noexcept { return use_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< between hosts

 private:
  struct Line {
    Duration free{0};
  };
  EventQueue& queue_;
  NetworkSpeed speed_;
  std::vector<PerByte> cards_;  // by host
  std::vector<Line> out_, in_, local_;
  std::vector<CardUse> use_;
  Pool<Packet> packets_;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::sim
