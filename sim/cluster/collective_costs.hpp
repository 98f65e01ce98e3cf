/// The cost of a reduction or broadcast over a group in virtual time: closed formulas per exchange algorithm, over an otherwise idle
/// network. Pure functions; times in nanoseconds.
///
/// n ranks on h hosts, k per host. A vector of s bytes as float32 and m bytes on the wire, in p parts that are exchanged one after the
/// other (1, or the model's tensors: older systems reduce tensor by tensor). α latency, c cost per message, B time per byte on a link
/// ("rate" below), S per byte that is read and summed, C per float32 byte that is converted, M per byte in a host's memory. asa: direct
/// reduce-scatter + allgather, Theano-MPI's alltoall-sum-allgather (Ma, Mao & Taylor 2016). ar: the MPI library's all-reduce.
///
///   ring          p · 2 (n−1) (α + c) + 2 (n−1)/n · m B + (n−1)/n · s S              (Patarasuk & Yuan 2009)
///   asa           p · 2 (α + (n−1) c) + 2 (n−1)/n · m B + s S
///   asa16         as asa with m = s/2, plus (3 + 1/n) · s C: to 16 bits and back in both phases
///   ar            p · log2 n (α + c) + 2 (n−1)/n · m B + (n−1)/n · s S               (messages as in recursive doubling, which dominate
///                                                                 for short vectors; bytes as in Rabenseifner's: Thakur et al. 2005)
///   shm           p · 2 α_local + 2 n s M                                  (one host: each rank reads and writes its n-th of n arenas)
///   hierarchical  p · 4 α_local + (k+1) s M + ring over the h hosts + k s M
///   broadcast     p · log2 n (α + c) + min(log2 n, 2 (n−1)/n) · m B        (a tree, or scatter and allgather: van de Geijn 1994);
///                 shm: p · α_local + n s M;  hierarchical: between hosts, then p · α_local + k s M
///
/// Links: ranks of one host share its network card. Every rank of asa and ar sends 2 (n−1)/n · m bytes; a host's card carries
/// 2 k (n−k)/n · m of them. In a ring neighbours are on one host, so the card carries what one rank sends. Traffic within a host uses
/// the devices' own links (device rate, each device apart) or the host's memory. The slower of the two counts. An algorithm can have
/// its own rate ([collectives.ar] gb_per_s): a library that stages through host memory is slower than the card.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"

namespace troupe::sim {

/// The vector that is exchanged.
struct Vector {
  std::uint64_t floats = 0;
  std::uint32_t parts = 1;
  bool rounds = true;  ///< asa16 may round it to 16 bits; false: asa. The other algorithms send float32
};

class CollectiveCosts {
 public:
  CollectiveCosts(const Cluster& cluster, Algorithm algorithm) : cluster_(cluster), algorithm_(algorithm) {}

  /// `hosts`: the host of each rank; ranks of one host are consecutive. One rank costs nothing.
  [[nodiscard]] Duration reduce(const Vector& vector, std::span<const HostId> hosts) const;
  [[nodiscard]] Duration broadcast(const Vector& vector, std::span<const HostId> hosts) const;
  /// Payload bytes that rank `rank` sends, as a real run counts them (exchange::counted_bytes); with `root` for a broadcast.
  [[nodiscard]] std::uint64_t bytes(const Vector& vector, std::span<const HostId> hosts, std::size_t rank,
                                    std::optional<std::size_t> root) const;
  /// Adds to `busy`, by host, the time that the bytes and messages of such a collective keep the host's card busy, one way. It is part of
  /// the collective's time: traffic within a host, sums and latency do not use the card.
  void add_card_time(const Vector& vector, std::span<const HostId> hosts, bool broadcast,
                     std::span<Duration> busy) const;
  /// The algorithm for these ranks; `automatic` is shm on one host, hierarchical where a host has several ranks, else ring.
  [[nodiscard]] Algorithm chosen(std::span<const HostId> hosts) const;

 private:
  /// As chosen(), but asa for vectors that asa16 may not round.
  [[nodiscard]] Algorithm chosen(const Vector& vector, std::span<const HostId> hosts) const;
  const Cluster& cluster_;
  Algorithm algorithm_;
};

}  // namespace troupe::sim
