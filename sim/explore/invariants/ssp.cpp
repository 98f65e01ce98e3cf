#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

/// A group of one is a worker. A group's clock is its leader's.
class ClocksChecker final : public Invariant {
 public:
  ClocksChecker(Step s, Step steps_per_clock, std::uint32_t group_size)
      : s_(s), steps_per_clock_(steps_per_clock), group_size_(group_size) {}

  /// A newcomer owes no updates before its first clock, and has read the centre's versions. Its predecessor's clocks are not its own.
  void entered(const VirtualRun&, WorkerId worker, Step first, const std::vector<Version>& read) override {
    first_[group_of(worker)] = first / steps_per_clock_;
    for (auto& [shard, clocks] : clocks_) clocks.erase(group_of(worker));
    for (auto& [version, clocks] : holds_) clocks.erase(group_of(worker));
    coming_.erase(worker);
    for (ShardId shard = 0; shard < read.size(); ++shard) read_[worker][shard] = read[shard];
  }

  void told(const VirtualRun& run, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    if (!request || request->kind != Transfer::push) return;
    // Called before the push is added: the next version holds this clock.
    auto& clocks = clocks_[shard];
    clocks[group_of(request->worker)] = request->clock / steps_per_clock_;
    holds_[{shard, run.server(shard).host().version() + 1}] = clocks;
  }

  void told(const VirtualRun&, WorkerId worker, const WorkerEvent& event) override {
    // Pulls have odd ids (strategies/ssp.cpp). No shard answers a collective's id.
    const auto* replied = std::get_if<Replied>(&event);
    if (replied && replied->exchange % 2 == 1) coming_[worker][replied->shard] = replied->version;
    const auto* done = std::get_if<ExchangeDone>(&event);
    if (done && done->exchange % 2 == 1 && coming_.contains(worker)) {
      for (const auto& [shard, version] : coming_[worker]) read_[worker][shard] = version;
      coming_.erase(worker);
    }
  }

  void step_begins(const VirtualRun& run, const StepBegins& begins) override {
    if (begins.worker % group_size_ != 0) return;  // members follow their leader
    const Step clock = begins.step / steps_per_clock_;
    for (const auto other : run.membership().workers) {
      if (!counts(run, other) || other == begins.worker) continue;
      const Step theirs = std::max(run.worker(other).host().steps() / steps_per_clock_, first_[group_of(other)]);
      if (clock > theirs + s_)
        throw Violation("worker " + std::to_string(begins.worker) + " begins clock " + std::to_string(clock) +
                        " with worker " + std::to_string(other) + " in clock " + std::to_string(theirs));
      if (clock <= s_) continue;
      for (ShardId shard = 0; shard < run.shards(); ++shard) check_read(begins.worker, clock, other, shard);
    }
  }

 private:
  [[nodiscard]] WorkerId group_of(WorkerId worker) const { return worker / group_size_; }

  /// Only leaders push, and only living ones are waited for.
  [[nodiscard]] bool counts(const VirtualRun& run, WorkerId worker) const {
    return worker % group_size_ == 0 && run.worker(worker).alive();
  }

  void check_read(WorkerId reader, Step clock, WorkerId other, ShardId shard) {
    const auto version = read_[reader][shard];
    const auto held = holds_.find({shard, version});
    const auto group = group_of(other);
    Step theirs = first_[group];
    if (held != holds_.end())
      if (const auto found = held->second.find(group); found != held->second.end())
        theirs = std::max(theirs, found->second);
    if (theirs + s_ < clock)
      throw Violation("worker " + std::to_string(reader) + " begins clock " + std::to_string(clock) +
                      " on parameters of shard " + std::to_string(shard) + " that hold " + std::to_string(theirs) +
                      " clocks of worker " + std::to_string(other));
  }

  Step s_;
  Step steps_per_clock_;
  std::uint32_t group_size_;
  std::map<WorkerId, Step> first_;                                         // first clock of each newcomer's group
  std::map<ShardId, std::map<WorkerId, Step>> clocks_;                     // pushed, by shard and group
  std::map<std::pair<ShardId, Version>, std::map<WorkerId, Step>> holds_;  // the same at each version
  std::map<WorkerId, std::map<ShardId, Version>> read_;                    // of a worker's parameters
  std::map<WorkerId, std::map<ShardId, Version>> coming_;                  // of a pull in flight
};

}  // namespace

std::unique_ptr<Invariant> checker(const BoundedClocks& property) {
  return std::make_unique<ClocksChecker>(property.s, property.steps_per_clock, property.group_size);
}

}  // namespace troupe::explore
