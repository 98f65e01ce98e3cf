#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/invariants/oracle.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

/// local_sgd and diloco (docs/strategies/local_sgd.md), per shard: every contribution counts once, in its round or, if late, in the next.
class RoundsChecker final : public Invariant {
 public:
  explicit RoundsChecker(const OuterRounds& rule) : rule_(rule), quorum_(rule.quorum) {}

  void told(const VirtualRun&, ShardId shard, const ServerEvent& event) override {
    auto& round = rounds_[shard];
    if (std::holds_alternative<MembershipChanged>(event)) round.all_there = false;
    const auto* request = std::get_if<Request>(&event);
    if (!request) return;
    requests_[{shard, request->id}] = *request;
  }

  void ran(const VirtualRun& run, const ServerKernel& kernel) override {
    auto& round = rounds_[kernel.shard];
    if (round.center.empty()) begin(kernel, round);
    if (kernel.request != 0 && kernel.call.y != kPayload) return add(round, kernel);
    if (!writes(kernel.call, kCenter)) return;
    require_enough(run, round);
    const double n = static_cast<double>(round.on_time.size() + round.late);
    for (std::size_t i = 0; i < round.center.size(); ++i) {
      const double mean = round.sum[i] / n;
      auto& v = round.velocity[i];
      auto& c = round.center[i];
      c += change(v, mean);
      expect_close(kernel.center[i], c, 4 * (round.size[i] / n + std::abs(kernel.center_before[i])),
                   "the centre is not where the round's mean moves it");
      c = kernel.center[i];  // rounding must not accumulate over rounds
      round.sum[i] = round.size[i] = 0;
    }
    for (const auto& [worker, clock] : round.on_time) round.closed = std::max(round.closed, clock);
    round.on_time.clear();
    round.late = 0;
  }

 private:
  struct Round {
    bool all_there = true;  // no member has left, as far as the shard knows
    std::vector<double> center, velocity, sum, size;
    std::map<WorkerId, Step> on_time;
    std::size_t late = 0;
    Step closed = 0;
  };

  /// The optimizer's step, in double precision and apart from the kernels; updates the velocity.
  [[nodiscard]] double change(double& v, double mean) const {
    if (rule_.optimizer == core::OptimizerKind::sgd) return -rule_.lr * mean;
    v = rule_.momentum * v - rule_.lr * mean;
    return rule_.momentum * v - rule_.lr * mean;
  }

  static void begin(const ServerKernel& kernel, Round& round) {
    round.center.assign(kernel.center_before.begin(), kernel.center_before.end());
    round.velocity.resize(round.center.size());
    round.sum = round.size = round.velocity;
  }

  void add(Round& round, const ServerKernel& kernel) {
    const auto node = requests_.extract({kernel.shard, kernel.request});
    if (node.empty()) throw Violation("a contribution counted twice");
    const auto& request = node.mapped();
    if (request.clock <= round.closed) {
      ++round.late;
    } else if (!round.on_time.emplace(request.worker, request.clock).second) {
      throw Violation("a worker contributed twice to a round");
    }
    for (std::size_t i = 0; i < round.sum.size(); ++i) {
      round.sum[i] += kernel.payload_before[i];
      round.size[i] += std::abs(kernel.payload_before[i]);
    }
  }

  /// All members, or the quorum; after a loss, the remaining members.
  void require_enough(const VirtualRun& run, const Round& round) const {
    if (round.on_time.empty()) throw Violation("a round was closed without a contribution");
    const std::size_t all = run.options().workers;
    const std::size_t needed = quorum_ > 0 ? std::min(quorum_, all) : all;
    if (round.all_there && round.on_time.size() < needed)
      throw Violation("a round was closed by " + std::to_string(round.on_time.size()) + " workers");
    if (quorum_ == 0 && round.late > 0 && run.losses() == 0)
      throw Violation("a contribution was late for a round of all");
  }

  OuterRounds rule_;
  std::size_t quorum_;
  std::map<std::pair<ShardId, RequestId>, Request> requests_;
  std::map<ShardId, Round> rounds_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const OuterRounds& property) {
  using enum core::OptimizerKind;
  if (property.optimizer != sgd && property.optimizer != nesterov)
    throw std::logic_error(
        fmt::format("the schedule search has no formula of {} as an outer optimizer: write it in "
                    "sim/explore/invariants/rounds.cpp",
                    core::optimizer_info(property.optimizer).name));
  return std::make_unique<RoundsChecker>(property);
}

}  // namespace troupe::explore
