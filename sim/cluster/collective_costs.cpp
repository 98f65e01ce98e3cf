#include "sim/cluster/collective_costs.hpp"

#include <algorithm>
#include <cmath>

#include "sim/engine/virtual_time.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::sim {
namespace {

/// The ranks in terms of the formulas.
struct Group {
  double n = 0;
  double hosts = 0;
  double most = 0;  // ranks on one host
};

Group group_of(std::span<const HostId> hosts) {
  Group group{.n = static_cast<double>(hosts.size())};
  double here = 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const bool first = rank == 0 || hosts[rank] != hosts[rank - 1];
    group.hosts += first ? 1 : 0;
    here = first ? 1 : here + 1;
    group.most = std::max(group.most, here);
  }
  return group;
}

double log2_up(double n) { return std::ceil(std::log2(n)); }

/// Of a reduction, on the wire.
std::size_t reduction_bytes_per_float(Algorithm algorithm) {
  return algorithm == Algorithm::asa16 ? sizeof(std::uint16_t) : sizeof(float);
}

/// One evaluation of the formulas.
class Formula {
 public:
  Formula(const Cluster& cluster, const CollectiveSpeed& speed, std::span<const HostId> hosts, const Vector& vector,
          std::size_t bytes_per_float)
      : cluster_(cluster),
        speed_(speed),
        hosts_(hosts),
        group_(group_of(hosts)),
        bytes_(static_cast<double>(vector.floats * bytes_per_float)),
        summed_(static_cast<double>(vector.floats) * sizeof(float)),
        parts_(vector.parts) {}

  [[nodiscard]] double ring() const {
    const double n = group_.n;
    return parts_ * 2 * (n - 1) * message() + neighbours(2 * (n - 1) / n * bytes_) +
           (n - 1) / n * summed_ * speed_.sum.ns;
  }
  [[nodiscard]] double asa(bool converts) const {
    const double n = group_.n;
    const double converted = converts ? (3 + 1 / n) * summed_ * speed_.convert.ns : 0;
    return parts_ * 2 * (alpha() + (n - 1) * per_message()) + everyone(2 * bytes_) + summed_ * speed_.sum.ns +
           converted;
  }
  [[nodiscard]] double ar() const {
    const double n = group_.n;
    return parts_ * log2_up(n) * message() + everyone(2 * bytes_) + (n - 1) / n * summed_ * speed_.sum.ns;
  }
  [[nodiscard]] double shm() const { return parts_ * 2 * local() + 2 * group_.n * summed_ * speed_.memory.ns; }
  [[nodiscard]] double hierarchical() const {
    const double inside = parts_ * 4 * local() + (2 * group_.most + 1) * summed_ * speed_.memory.ns;
    const double h = group_.hosts;
    if (h == 1) return inside;
    return inside + parts_ * 2 * (h - 1) * message() + neighbours(2 * (h - 1) / h * bytes_) +
           (h - 1) / h * summed_ * speed_.sum.ns;
  }
  [[nodiscard]] double broadcast_within() const { return parts_ * local() + group_.n * summed_ * speed_.memory.ns; }
  [[nodiscard]] double broadcast_between(double ranks) const {
    const double rounds = std::min(log2_up(ranks), 2 * (ranks - 1) / ranks);
    return parts_ * log2_up(ranks) * message() + neighbours(rounds * bytes_);
  }
  [[nodiscard]] double broadcast_hierarchical() const {
    const double between = group_.hosts > 1 ? broadcast_between(group_.hosts) : 0;
    return between + parts_ * local() + group_.most * summed_ * speed_.memory.ns;
  }
  [[nodiscard]] const Group& group() const { return group_; }

  // The cards' part of the times above.
  void ring_cards(double ranks, std::span<Duration> busy) const {
    add_neighbours(2 * (ranks - 1) / ranks * bytes_, 2 * (ranks - 1), busy);
  }
  void broadcast_cards(double ranks, std::span<Duration> busy) const {
    add_neighbours(std::min(log2_up(ranks), 2 * (ranks - 1) / ranks) * bytes_, log2_up(ranks), busy);
  }
  void everyone_cards(double messages, std::span<Duration> busy) const {
    const double n = group_.n;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
      if (const double k = count_at(rank); k > 0) add(hosts_[rank], k * (n - k) / n * 2 * bytes_, messages, busy);
  }

 private:
  void add_neighbours(double bytes, double messages, std::span<Duration> busy) const {
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
      if (count_at(rank) > 0) add(hosts_[rank], bytes, messages, busy);
  }
  void add(HostId host, double bytes, double messages, std::span<Duration> busy) const {
    const auto whole = cluster_.hosts[host].card.ns;
    const double per_byte = std::min(whole, card(host));  // an algorithm's own rate does not slow the card down
    busy[host] += nanoseconds(bytes * per_byte + parts_ * messages * per_message());
  }
  [[nodiscard]] double local() const { return static_cast<double>(cluster_.network.local_latency.count()); }
  [[nodiscard]] double per_message() const { return static_cast<double>(cluster_.network.per_message.count()); }
  [[nodiscard]] double alpha() const {
    return group_.hosts > 1 ? static_cast<double>(cluster_.network.latency.count()) : local();
  }
  [[nodiscard]] double message() const { return alpha() + per_message(); }
  [[nodiscard]] const HostKind& kind(HostId host) const { return cluster_.kinds[cluster_.hosts[host].kind]; }
  [[nodiscard]] double rate(const PerByte& link) const { return speed_.rate.ns > 0 ? speed_.rate.ns : link.ns; }
  [[nodiscard]] double card(HostId host) const { return rate(cluster_.hosts[host].card); }

  /// Time within a host for `bytes` that each of k ranks sends to the others there.
  [[nodiscard]] double within(HostId host, double k, double bytes) const {
    if (k < 2) return 0;
    const auto device = kind(host).device;
    return device.ns > 0 || speed_.rate.ns > 0 ? bytes * rate(device) : k * bytes * cluster_.network.local.ns;
  }

  /// Time of `bytes` from every rank to the next one.
  [[nodiscard]] double neighbours(double bytes) const {
    double slowest = 0;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      const bool alone = group_.hosts == 1;
      const double between = alone ? 0 : bytes * card(hosts_[rank]);
      slowest = std::max({slowest, between, within(hosts_[rank], count_at(rank), bytes)});
    }
    return slowest;
  }

  /// Time of `bytes` per rank, spread evenly over all n ranks; a rank's own share does not move.
  [[nodiscard]] double everyone(double bytes) const {
    const double n = group_.n;
    double slowest = 0;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      const double k = count_at(rank);
      const double between = k * (n - k) / n * bytes * card(hosts_[rank]);
      slowest = std::max({slowest, between, within(hosts_[rank], k, (k - 1) / n * bytes)});
    }
    return slowest;
  }

  /// Ranks on this rank's host; 0 for all but the first of them, so that a host counts once.
  [[nodiscard]] double count_at(std::size_t rank) const {
    if (rank > 0 && hosts_[rank] == hosts_[rank - 1]) return 0;
    std::size_t end = rank;
    while (end < hosts_.size() && hosts_[end] == hosts_[rank]) ++end;
    return static_cast<double>(end - rank);
  }

  const Cluster& cluster_;
  const CollectiveSpeed& speed_;
  std::span<const HostId> hosts_;
  Group group_;
  double bytes_;   // on the wire
  double summed_;  // as float32
  double parts_;
};

}  // namespace

Algorithm CollectiveCosts::chosen(std::span<const HostId> hosts) const {
  if (algorithm_ != Algorithm::automatic) return algorithm_;
  const auto group = group_of(hosts);
  if (group.hosts == 1) return Algorithm::shm;
  return group.most > 1 ? Algorithm::hierarchical : Algorithm::ring;
}

Algorithm CollectiveCosts::chosen(const Vector& vector, std::span<const HostId> hosts) const {
  const auto algorithm = chosen(hosts);
  return algorithm == Algorithm::asa16 && !vector.rounds ? Algorithm::asa : algorithm;
}

Duration CollectiveCosts::reduce(const Vector& vector, std::span<const HostId> hosts) const {
  if (hosts.size() < 2) return Duration{0};
  const auto algorithm = chosen(vector, hosts);
  const Formula formula(cluster_, cluster_.collectives[static_cast<std::size_t>(algorithm)], hosts, vector,
                        reduction_bytes_per_float(algorithm));
  switch (algorithm) {
    case Algorithm::ar: return nanoseconds(formula.ar());
    case Algorithm::asa: return nanoseconds(formula.asa(false));
    case Algorithm::asa16: return nanoseconds(formula.asa(true));
    // NCCL's is taken for a ring: what it does depends on the machine.
    case Algorithm::nccl:
    case Algorithm::ring: return nanoseconds(formula.ring());
    // shm over several hosts runs as hierarchical.
    case Algorithm::shm: return nanoseconds(formula.group().hosts == 1 ? formula.shm() : formula.hierarchical());
    default: return nanoseconds(formula.hierarchical());
  }
}

Duration CollectiveCosts::broadcast(const Vector& vector, std::span<const HostId> hosts) const {
  if (hosts.size() < 2) return Duration{0};
  const auto algorithm = chosen(hosts);
  const Formula formula(cluster_, cluster_.collectives[static_cast<std::size_t>(algorithm)], hosts, vector,
                        sizeof(float));
  if (algorithm == Algorithm::hierarchical || algorithm == Algorithm::shm)
    return nanoseconds(formula.group().hosts == 1 ? formula.broadcast_within() : formula.broadcast_hierarchical());
  return nanoseconds(formula.broadcast_between(formula.group().n));
}

std::uint64_t CollectiveCosts::bytes(const Vector& vector, std::span<const HostId> hosts, std::size_t rank,
                                     std::optional<std::size_t> root) const {
  const bool shared = group_of(hosts).hosts == 1;
  auto algorithm = root ? chosen(hosts) : chosen(vector, hosts);
  if (algorithm == Algorithm::shm && !shared) algorithm = Algorithm::hierarchical;
  const exchange::Group group{
      .rank = rank, .peers = std::vector<transport::Peer>(hosts.size()), .hosts = {hosts.begin(), hosts.end()}};
  return exchange::counted_bytes({.algorithm = algorithm, .root = root}, group, vector.floats);
}

void CollectiveCosts::add_card_time(const Vector& vector, std::span<const HostId> hosts, bool broadcast,
                                    std::span<Duration> busy) const {
  const auto algorithm = broadcast ? chosen(hosts) : chosen(vector, hosts);
  const Formula formula(cluster_, cluster_.collectives[static_cast<std::size_t>(algorithm)], hosts, vector,
                        broadcast ? sizeof(float) : reduction_bytes_per_float(algorithm));
  const auto& group = formula.group();
  if (group.hosts < 2) return;
  const bool by_host = algorithm == Algorithm::hierarchical || algorithm == Algorithm::shm;
  const double ranks = by_host ? group.hosts : group.n;
  if (broadcast) return formula.broadcast_cards(ranks, busy);
  switch (algorithm) {
    case Algorithm::ar: return formula.everyone_cards(log2_up(group.n), busy);
    case Algorithm::asa:
    case Algorithm::asa16: return formula.everyone_cards(2 * (group.n - 1), busy);
    default: return formula.ring_cards(ranks, busy);
  }
}

}  // namespace troupe::sim
