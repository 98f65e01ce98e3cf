#include <map>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/invariants/oracle.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

class AverageChecker final : public Invariant {
 public:
  AverageChecker(double ema, Slot slot) : ema_(ema), slot_(slot) {}

  void ran(const VirtualRun& run, const ServerKernel& kernel) override {
    auto& owed = owed_[kernel.shard];
    if (writes(kernel.call, kCenter)) {
      if (owed) throw Violation("the centre was written twice and the average followed once");
      owed = true;
      return;
    }
    if (!writes(kernel.call, slot_)) return;
    if (!owed) throw Violation("the average moved and the centre had not");
    owed = false;
    auto& average = averages_[kernel.shard];
    if (average.empty()) start(run, kernel.shard, average);
    const auto now = run.server(kernel.shard).peek(slot_);
    for (std::size_t i = 0; i < average.size(); ++i) {
      average[i] = ema_ * average[i] + (1 - ema_) * kernel.center[i];
      expect_close(now[i], average[i], 4 * (std::abs(average[i]) + std::abs(kernel.center[i])),
                   "the moving average is not the centre's");
      average[i] = now[i];
    }
  }

  void at_rest(const VirtualRun&) override {
    for (const auto& [shard, owed] : owed_)
      if (owed) throw Violation("the average did not follow the centre");
  }

 private:
  static void start(const VirtualRun& run, ShardId shard, std::vector<double>& average) {
    auto whole = floats(run.options().floats);
    run.quadratic().start(whole.view());
    const auto range = cut(run.options().floats, run.options().servers, shard);
    for (std::size_t i = 0; i < range.count; ++i) average.push_back(whole.view()[range.offset + i]);
  }
  double ema_;
  Slot slot_;
  std::map<ShardId, bool> owed_;  // a write that the average has not followed yet
  std::map<ShardId, std::vector<double>> averages_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const MovingAverage& property, Slot slot) {
  return std::make_unique<AverageChecker>(property.decay, slot);
}

}  // namespace troupe::explore
