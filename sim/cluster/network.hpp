/// Messages on their way between hosts in virtual time: latency, bandwidth, a cost per message, and lines before network cards.
///
/// A host has one network card with one way out and one way in; each serves whole messages in the order in which they come to it
/// (FIFO, the order that keeps a worker's requests to a shard in order). With p the cost per message, L the latency, B_out and B_in
/// the time that the bytes take on the sender's and the receiver's card:
///
///   way out   begins at b = max(sent, card free), then the card is busy for p + B_out
///   head      reaches the receiver at h = b + p + L
///   way in    begins at i = max(h, card free), then the card is busy for B_in
///   here      at max(i + B_in, h + B_out): cut-through, so an empty network takes p + L + max(B_out, B_in)
///
/// A card that receives from slower ones is busy for its own B_in only, so it takes in several at once. Within a host a message takes
/// the local latency, and its bytes stand in line for the host's memory; with no local speed given they are lent and take no time.
/// Collectives do not come here: sim/cluster/collective_costs.hpp.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/pool.hpp"
#include "strategies/host/port.hpp"

namespace troupe::sim {

/// A peer's vector on its way, or (from alone) the credit that goes back.
struct Mail {
  strategies::WorkerId from = 0;
  std::uint32_t from_life = 0;
  std::uint32_t memory = 0;  ///< where its numbers are, when there are any
  double weight = 0;
};

enum class PacketKind : std::uint8_t { request, reply, mail, credit };

/// A message, and on its way back the answer to it. Two cache lines; the first is all that the network looks at.
struct alignas(64) Packet {
  std::uint64_t bytes = 0;
  HostId from = 0;
  HostId to = 0;
  Duration tail{0};                 ///< when its last byte may be there at the earliest
  Duration line{0};                 ///< stood in line before the card of the server's host, or for a host's memory
  strategies::ShardId shard = 0;    ///< request and reply
  strategies::WorkerId worker = 0;  ///< the request's, or whom mail is for
  std::uint32_t life = 0;           ///< of that worker: what was meant for an earlier one is not delivered
  PacketKind kind = PacketKind::request;
  strategies::Slot slot{};  ///< request: whose slice travels
  strategies::Rounding rounding = strategies::Rounding::both;
  union {  // as kind says
    strategies::Request request;
    strategies::ShardReply reply;
    Mail mail;
  };
  Packet() noexcept : mail{} {}
};
static_assert(sizeof(Packet) == 128);

/// What went through one host's card.
struct CardUse {
  Duration out{0};  ///< busy
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

  /// Sends at `at`, which is now or later. Its end: packet_here, or packet_head for which head() is true.
  void send(std::uint32_t packet, Duration at);
  void leave(std::uint32_t packet);               ///< packet_leaves
  [[nodiscard]] bool head(std::uint32_t packet);  ///< packet_head; true: the whole packet is here already

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
