#include <algorithm>
#include <map>
#include <set>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/invariants/oracle.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

class ElasticChecker final : public Invariant {
 public:
  explicit ElasticChecker(ElasticExchanges rule) : rule_(std::move(rule)) {}

  void told(const VirtualRun&, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    if (request) epochs_[{shard, request->id}] = request->epoch;
  }

  void refused(const VirtualRun&, ShardId shard, const Request& request) override {
    refused_.emplace(shard, request.id);
  }

  void ran(const VirtualRun&, const ServerKernel& kernel) override {
    if (!writes(kernel.call, kCenter)) return;
    const auto epoch = epochs_.extract({kernel.shard, kernel.request});
    if (epoch.empty()) throw Violation("a centre moved twice for one exchange, or for none");
    if (refused_.contains({kernel.shard, kernel.request})) return expect_unmoved(kernel);
    const auto [worker, server] = rates(epoch.mapped());
    const bool answers_delta = kernel.call.kernel == strategies::KernelName::elastic_delta;
    for (std::size_t i = 0; i < kernel.center.size(); ++i) {
      const double x = kernel.payload_before[i];
      const double c = kernel.center_before[i];
      expect_close(kernel.center[i], c + server * (x - c), std::abs(x) + std::abs(c),
                   "the centre moved by other than alpha d");
      expect_close(kernel.payload[i], answers_delta ? worker * (x - c) : x - worker * (x - c),
                   std::abs(x) + std::abs(c), "the worker was answered other than alpha d");
    }
  }

 private:
  [[nodiscard]] std::pair<double, double> rates(double epoch) const {
    if (rule_.schedule.empty()) return {rule_.alpha_worker, rule_.alpha_server};
    const auto last = rule_.schedule.size() - 1;
    const double rate = rule_.schedule[std::min(static_cast<std::size_t>(epoch), last)];
    return {rate, rate};
  }
  ElasticExchanges rule_;
  std::set<std::pair<ShardId, RequestId>> refused_;
  std::map<std::pair<ShardId, RequestId>, double> epochs_;  // of exchanges that have not moved the centre yet
};

class SyncElasticChecker final : public Invariant {
 public:
  explicit SyncElasticChecker(double alpha) : alpha_(alpha) {}

  void told(const VirtualRun&, ShardId shard, const ServerEvent& event) override {
    const auto* request = std::get_if<Request>(&event);
    if (request) requests_[{shard, request->id}] = *request;
  }

  void ran(const VirtualRun& run, const ServerKernel& kernel) override {
    auto& round = rounds_[kernel.shard];
    if (kernel.request != 0 && kernel.call.y != kPayload) return add(round, kernel);
    if (!writes(kernel.call, kCenter)) return;
    const double n = static_cast<double>(round.whose.size());
    if (run.losses() == 0 && round.whose.size() != run.options().workers)
      throw Violation("a round was closed by " + std::to_string(round.whose.size()) + " workers");
    for (std::size_t i = 0; i < kernel.center.size(); ++i) {
      const double c = kernel.center_before[i];
      expect_close(kernel.center[i], (1 - n * alpha_) * c + alpha_ * round.sum[i], round.size[i] + n * std::abs(c),
                   "the centre moved by other than alpha of the sum");
    }
    round = {};
  }

  void at_rest(const VirtualRun&) override {
    for (const auto& [shard, round] : rounds_)
      if (!round.whose.empty()) throw Violation("what was summed up never reached the centre");
  }

 private:
  struct Round {
    std::map<WorkerId, Step> whose;
    std::vector<double> sum;
    std::vector<double> size;  // of the terms
  };
  void add(Round& round, const ServerKernel& kernel) {
    const auto node = requests_.extract({kernel.shard, kernel.request});
    if (node.empty()) throw Violation("a worker's parameters counted twice");
    const auto& request = node.mapped();
    if (!round.whose.empty() && round.whose.begin()->second != request.clock)
      throw Violation("workers at different steps met in one round");
    if (!round.whose.emplace(request.worker, request.clock).second) throw Violation("a worker came twice to a round");
    round.sum.resize(kernel.center.size());
    round.size.resize(kernel.center.size());
    for (std::size_t i = 0; i < round.sum.size(); ++i) {
      round.sum[i] += kernel.payload_before[i];
      round.size[i] += std::abs(kernel.payload_before[i]);
    }
  }
  double alpha_;
  std::map<std::pair<ShardId, RequestId>, Request> requests_;
  std::map<ShardId, Round> rounds_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const ElasticExchanges& property) {
  return std::make_unique<ElasticChecker>(property);
}
std::unique_ptr<Invariant> checker(const SyncElasticRounds& property) {
  return std::make_unique<SyncElasticChecker>(property.alpha);
}

}  // namespace troupe::explore
