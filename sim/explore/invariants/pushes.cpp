#include <algorithm>
#include <map>
#include <set>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/invariants/oracle.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

/// c ← c + share · payload for each push, once; a refused push changes nothing.
class PushesChecker final : public Invariant {
 public:
  PushesChecker(bool optimizer, bool aware) : optimizer_(optimizer), aware_(aware) {}

  void told(const VirtualRun& run, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    if (!request || request->kind == Transfer::pull) return;
    ++pushes_[shard];
    const auto staleness = run.server(shard).host().version() - request->version;
    open_[{shard, request->id}] = aware_ ? 1.0 / static_cast<double>(std::max<Version>(staleness, 1)) : 1.0;
  }

  void refused(const VirtualRun&, ShardId shard, const Request& request) override {
    if (open_.erase({shard, request.id}) == 0) return;
    --pushes_[shard];
    refused_.emplace(shard, request.id);
  }

  void ran(const VirtualRun& run, const ServerKernel& kernel) override {
    if (!writes(kernel.call, kCenter)) return;
    if (refused_.erase({kernel.shard, kernel.request}) > 0) {  // zeros may be added, like a push
      ++pushes_[kernel.shard];
      return expect_unmoved(kernel);
    }
    const auto node = open_.extract({kernel.shard, kernel.request});
    if (node.empty()) throw Violation("a push was applied twice, or none was");
    if (optimizer_) return;
    auto& expected = centers_[kernel.shard];
    if (expected.empty()) start(run, kernel.shard, expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double share = node.mapped() * kernel.payload_before[i];
      expected[i].value += share;
      expected[i].size += std::abs(share);
      expect_close(kernel.center[i], expected[i].value, expected[i].size, "the centre is not its start and all pushes");
    }
  }

  void at_rest(const VirtualRun& run) override {
    if (!open_.empty()) throw Violation("a push was answered and never applied");
    for (ShardId s = 0; s < run.shards(); ++s)
      if (run.server(s).host().version() != pushes_[s]) throw Violation("a shard's version is not its pushes");
  }

 private:
  struct Element {
    double value = 0;
    double size = 0;  // of all summands
  };
  static void start(const VirtualRun& run, ShardId shard, std::vector<Element>& elements) {
    auto whole = floats(run.options().floats);
    run.quadratic().start(whole.view());
    const auto range = cut(run.options().floats, run.options().servers, shard);
    for (std::size_t i = 0; i < range.count; ++i) {
      const double value = whole.view()[range.offset + i];
      elements.push_back({value, std::abs(value)});
    }
  }
  bool optimizer_;
  bool aware_;
  std::map<std::pair<ShardId, RequestId>, double> open_;  // each with the share that counts
  std::set<std::pair<ShardId, RequestId>> refused_;       // not written yet
  std::map<ShardId, std::uint64_t> pushes_;
  std::map<ShardId, std::vector<Element>> centers_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const PushesCount& property) {
  return std::make_unique<PushesChecker>(property.server_optimizer, property.staleness_aware);
}

}  // namespace troupe::explore
