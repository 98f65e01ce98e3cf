#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/cluster.hpp"

namespace troupe::explore {
namespace {

bool finite(core::ConstSpan values) {
  for (const float value : values)
    if (!std::isfinite(value)) return false;
  return true;
}

class General final : public Invariant {
 public:
  void told(const Cluster&, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    if (request && !asked_.emplace(shard, request->worker, request->exchange).second)
      throw Violation("a shard was told of a request twice");
  }

  void told(const Cluster& cluster, WorkerId worker, const WorkerEvent& event) override {
    const auto* replied = std::get_if<Replied>(&event);
    if (!replied) return;
    const auto part = std::tuple{replied->shard, worker, replied->exchange};
    if (!asked_.contains(part)) throw Violation("a worker was answered what its shard was never told");
    if (!answered_.insert(part).second) throw Violation("a worker was answered twice");
    if (replied->version > cluster.server(replied->shard).host().version())
      throw Violation("a worker was shown a version before it was there");
  }

  void ran(const Cluster&, const ServerKernel& kernel) override {
    if (writes(kernel.call, kCenter)) ++writes_[kernel.shard];
  }

  void happened(const Cluster& cluster) override {
    for (ShardId s = 0; s < cluster.shards(); ++s) {
      const auto now = cluster.server(s).host().version();
      const auto written = std::exchange(writes_[s], 0);
      const auto before = std::exchange(versions_[s], now);
      if (now < before) throw Violation("the version of a shard went back");
      if (now - before > written) throw Violation("the version of a shard grew without a write");
      if (now == before && written > 0) throw Violation("a shard was written, and its version stayed");
    }
  }

  void at_rest(const Cluster& cluster) override {
    std::uint64_t passed = 0;
    bool anyone = false;
    for (WorkerId w = 0; w < cluster.workers(); ++w) {
      if (!cluster.has(w)) throw Violation("worker " + std::to_string(w) + " was announced and never came");
      const auto& worker = cluster.worker(w);
      passed += worker.host().totals().passed;
      if (!worker.alive()) continue;
      anyone = true;
      if (!finite(worker.params())) throw Violation("a worker read values that were never written");
      if (cluster.in_step() && worker.host().steps() != cluster.options().steps)
        throw Violation("worker " + std::to_string(w) + " stopped before its last step");
    }
    for (ShardId s = 0; s < cluster.shards(); ++s)
      if (!finite(cluster.server(s).center())) throw Violation("a shard read values that were never written");
    const auto leases = cluster.options().steps * cluster.options().workers;
    const bool all_of_them = cluster.losses() == 0 || (anyone && !cluster.in_step());
    if (all_of_them && cluster.leases_done() + passed != leases)
      throw Violation(std::to_string(cluster.leases_done() + passed) + " of " + std::to_string(leases) +
                      " leases are done");
    if (asked_.size() < answered_.size()) throw Violation("more answers than requests");
  }

 private:
  using Part = std::tuple<ShardId, WorkerId, ExchangeId>;
  std::set<Part> asked_;
  std::set<Part> answered_;
  std::map<ShardId, std::uint64_t> writes_;  // since the last event
  std::map<ShardId, Version> versions_;
};

}  // namespace

std::unique_ptr<Invariant> general() { return std::make_unique<General>(); }

}  // namespace troupe::explore
