#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

class BackupChecker final : public Invariant {
 public:
  explicit BackupChecker(std::size_t backup) : backup_(backup) {}

  void told(const VirtualRun&, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    // A pull is not a gradient: its id names a shard in its low 16 bits (strategies/bsp_backup.cpp).
    if (request && (request->exchange & 0xffff) == 0) gradients_.emplace(std::pair{shard, request->id}, *request);
  }

  void dropped(const VirtualRun& run, ShardId shard, const Request& request) override {
    if (!gradients_.contains({shard, request.id})) throw Violation("a shard dropped what is no gradient");
    // After a loss a shard may close a step without any gradient, which this check does not see.
    if (run.losses() == 0 && request.clock > closed_[shard]) throw Violation("a gradient was dropped that is not late");
    dropped_.emplace(shard, request.id);
  }

  void ran(const VirtualRun& run, const ServerKernel& kernel) override {
    if (kernel.request != 0 && kernel.call.y != kPayload) return apply(kernel);
    if (kernel.request == 0 && writes(kernel.call, kCenter)) close(run, kernel.shard);
  }

  void at_rest(const VirtualRun& run) override {
    std::uint64_t counted = 0;
    for (ShardId s = 0; s < run.shards(); ++s) {
      counted += run.server(s).host().totals().dropped;
      if (!open_[s].empty()) throw Violation("gradients were summed up and no step was taken");
    }
    if (counted != dropped_.size()) throw Violation("late gradients are not counted");
  }

 private:
  void apply(const ServerKernel& kernel) {
    const std::pair key{kernel.shard, kernel.request};
    const auto found = gradients_.find(key);
    if (found == gradients_.end()) throw Violation("a shard applied what is no gradient");
    const auto& request = found->second;
    if (dropped_.contains(key)) throw Violation("a gradient was applied that had been dropped");
    if (request.clock <= closed_[kernel.shard])
      throw Violation("a gradient of step " + std::to_string(request.clock - 1) + " was applied late");
    auto& open = open_[kernel.shard];
    if (!open.empty() && open.begin()->second != request.clock)
      throw Violation("gradients of two steps were applied in one");
    if (!open.emplace(request.worker, request.clock).second)
      throw Violation("two gradients of a worker were applied in one step");
  }

  void close(const VirtualRun& run, ShardId shard) {
    auto& open = open_[shard];
    if (open.empty()) throw Violation("a shard took a step without a gradient");
    const bool exact = run.losses() == 0 && run.membership().size() == run.options().workers;
    if (exact && open.size() != run.options().workers - backup_)
      throw Violation("a step was taken with " + std::to_string(open.size()) + " gradients");
    closed_[shard] = open.begin()->second;
    open.clear();
  }

  std::size_t backup_;
  std::map<std::pair<ShardId, RequestId>, Request> gradients_;
  std::set<std::pair<ShardId, RequestId>> dropped_;
  std::map<ShardId, std::map<WorkerId, Step>> open_;  // applied in the current step: worker and step of the gradient
  std::map<ShardId, Step> closed_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const BackupSteps& property) {
  return std::make_unique<BackupChecker>(property.backup);
}

}  // namespace troupe::explore
