/// What a reduction or broadcast over a group costs in virtual time: closed formulas per exchange algorithm, over an otherwise idle
/// network. Pure functions; times in nanoseconds.
///
/// n ranks on h hosts, k of them on a host; a vector of m bytes on the wire in p parts, exchanged one after the other (1, or the
/// model's tensors: older systems reduce tensor by tensor); α latency, c cost per message, B the time of a byte on a link
/// ("rate" below), S of a byte read to be summed, C of a float32 byte that is converted, M of a byte on a host's memory.
///
///   ring          p · 2 (n−1) (α + c) + 2 (n−1)/n · m B + (n−1)/n · m S              (Patarasuk & Yuan 2009)
///   asa           p · 2 (α + (n−1) c) + 2 (n−1)/n · m B + m S                        (alltoall, sum, allgather: Ma, Mao & Taylor 2016)
///   asa16         as asa with half the bytes on the wire, and (3 + 1/n) · 2 m C: to 16 bits and back in both phases
///   ar            p · log2 n (α + c) + 2 (n−1)/n · m B + (n−1)/n · m S               (recursive doubling's messages, which short vectors
///                                                                 feel; Rabenseifner's bytes, which long ones do: Thakur et al. 2005)
///   shm           p · 2 α_local + 2 n m M                                  (one host: everyone reads and writes its n-th of n arenas)
///   hierarchical  p · 4 α_local + (k+1) m M + ring over the h hosts + k m M
///   broadcast     p · log2 n (α + c) + min(log2 n, 2 (n−1)/n) · m B        (a tree, or scatter and allgather: van de Geijn 1994);
///                 shm: p · α_local + n m M;  hierarchical: between hosts, then p · α_local + k m M
///
/// Links: ranks of one host share its network card. Of the 2 (n−1)/n · m bytes that every rank of asa and ar sends, the card of a host
/// carries 2 k (n−k)/n · m; in a ring neighbours sit together, so it carries what one rank sends. What stays within a host goes over
/// the devices' own links (device rate, each device apart) or the host's memory. The slower of the two counts. An algorithm can have
/// a rate of its own ([collectives.ar] gb_per_s): a library that stages through host memory is slower than the card.
#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"

namespace troupe::sim {

/// What is moved.
struct Vector {
  std::uint64_t floats = 0;
  std::uint32_t wire_bytes = 4;  ///< per float
  std::uint32_t parts = 1;
  bool rounds = true;  ///< asa16 may round it; else it goes as by asa
};

class CollectiveCosts {
 public:
  CollectiveCosts(const Cluster& cluster, Algorithm algorithm) : cluster_(cluster), algorithm_(algorithm) {}

  /// `hosts`: where each rank sits, ranks of one host behind each other. One rank: nothing.
  [[nodiscard]] Duration reduce(const Vector& vector, std::span<const HostId> hosts) const;
  [[nodiscard]] Duration broadcast(const Vector& vector, std::span<const HostId> hosts) const;
  /// What `automatic` is for these ranks: shm on one host, hierarchical where a host has several, else ring.
  [[nodiscard]] Algorithm chosen(std::span<const HostId> hosts) const;

 private:
  const Cluster& cluster_;
  Algorithm algorithm_;
};

}  // namespace troupe::sim
