#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

bool finite(core::ConstSpan values) {
  for (const float value : values)
    if (!std::isfinite(value)) return false;
  return true;
}

class General final : public Invariant {
 public:
  /// A newcomer counts its exchanges anew.
  void entered(const VirtualRun&, WorkerId worker, Step, const std::vector<Version>&) override {
    const auto of_predecessor = [&](const Part& part) { return std::get<1>(part) == worker; };
    std::erase_if(asked_, of_predecessor);
    std::erase_if(answered_, of_predecessor);
  }

  void step_begins(const VirtualRun&, const StepBegins& begins) override {
    if (!leases_.insert(begins.lease).second)
      throw Violation("lease " + std::to_string(begins.lease) + " was begun twice");
  }

  void told(const VirtualRun&, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    if (request && !asked_.emplace(shard, request->worker, request->exchange).second)
      throw Violation("a shard was told of a request twice");
  }

  void told(const VirtualRun& run, WorkerId worker, const WorkerEvent& event) override {
    const auto* replied = std::get_if<Replied>(&event);
    if (!replied) return;
    const auto part = std::tuple{replied->shard, worker, replied->exchange};
    if (!asked_.contains(part)) throw Violation("a worker was answered what its shard was never told");
    if (!answered_.insert(part).second) throw Violation("a worker was answered twice");
    if (replied->version > run.server(replied->shard).host().version())
      throw Violation("a worker was shown a version before it was there");
  }

  void ran(const VirtualRun&, const ServerKernel& kernel) override {
    if (writes(kernel.call, kCenter)) ++writes_[kernel.shard];
  }

  void happened(const VirtualRun& run) override {
    for (ShardId s = 0; s < run.shards(); ++s) {
      const auto now = run.server(s).host().version();
      const auto written = std::exchange(writes_[s], 0);
      const auto before = std::exchange(versions_[s], now);
      if (now < before) throw Violation("the version of a shard went back");
      if (now - before > written) throw Violation("the version of a shard grew without a write");
      if (now == before && written > 0) throw Violation("a shard was written, and its version stayed");
    }
  }

  void at_rest(const VirtualRun& run) override {
    std::uint64_t passed = 0;
    std::optional<Step> steps;  // of the first living worker
    for (WorkerId w = 0; w < run.workers(); ++w) {
      const auto& worker = run.worker(w);
      passed += worker.host().totals().passed;
      if (!worker.alive()) continue;
      if (!finite(worker.params())) throw Violation("a worker read values that were never written");
      if (!steps) steps = worker.host().steps();
      if (run.in_step() && worker.host().steps() != *steps)
        throw Violation("worker " + std::to_string(w) + " stopped at another step than the others");
    }
    for (ShardId s = 0; s < run.shards(); ++s)
      if (!finite(run.server(s).center())) throw Violation("a shard read values that were never written");
    if (steps && !run.leases().finished()) throw Violation("the run ended before its last lease");
    const auto leases = run.options().steps * run.options().workers;
    // In step a lost worker's leases are passed over; later rounds are divided among the others.
    const bool all_of_them = run.losses() == 0 || (steps && !run.in_step());
    if (all_of_them && run.leases_done() + passed != leases)
      throw Violation(std::to_string(run.leases_done() + passed) + " of " + std::to_string(leases) +
                      " leases are done");
    if (asked_.size() < answered_.size()) throw Violation("more answers than requests");
  }

 private:
  using Part = std::tuple<ShardId, WorkerId, ExchangeId>;
  std::set<Part> asked_;
  std::set<Part> answered_;
  std::set<std::uint64_t> leases_;           // begun
  std::map<ShardId, std::uint64_t> writes_;  // since the last event
  std::map<ShardId, Version> versions_;
};

}  // namespace

std::unique_ptr<Invariant> general() { return std::make_unique<General>(); }

}  // namespace troupe::explore
