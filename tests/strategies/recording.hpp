/// A strategy whose rules record their events and actions, and otherwise work as always.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct WorkerTold {
  WorkerEvent event;
  WorkerId self = 0;
  Membership membership;
  std::uint64_t seed = 0;
  Step step = 0;
  std::vector<WorkerAction> actions;
  bool at_rest = false;  // a moment at which the host may ask the rule for its state
};
struct ServerTold {
  ServerEvent event;
  ShardId self = 0;
  Membership membership;
  Version version = 0;
  std::vector<ServerAction> actions;
  bool at_rest = false;
};

inline std::vector<WorkerAction> answer(WorkerRule& rule, const WorkerTold& told) {
  WorkerActions actions;
  const WorkerContext context{told.self, told.membership, told.seed, told.step};
  std::visit([&](const auto& event) { rule.on(event, context, actions); }, told.event);
  return actions.list();
}
inline std::vector<ServerAction> answer(ServerRule& rule, const ServerTold& told) {
  ServerActions actions;
  const ServerContext context{told.self, told.membership, told.version};
  std::visit([&](const auto& event) { rule.on(event, context, actions); }, told.event);
  return actions.list();
}

class RecordingWorker final : public WorkerRule {
 public:
  RecordingWorker(std::unique_ptr<WorkerRule> rule, std::shared_ptr<std::vector<WorkerTold>> log)
      : rule_(std::move(rule)), log_(std::move(log)) {}
  void on(const Started& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const BucketReady& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const StepDone& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const Stopped& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const Replied& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const ExchangeDone& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const PeerMessageArrived& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const SendSkipped& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const MembershipChanged& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }
  void on(const DeadlinePassed& e, const WorkerContext& c, WorkerActions& t) override { note(e, c, t); }

 private:
  template <class Event>
  void note(const Event& event, const WorkerContext& context, WorkerActions& then) {
    rule_->on(event, context, then);
    bool ordered = false;
    for (const auto& action : then.list()) {
      ordered = ordered || std::holds_alternative<Compute>(action);
      in_flight_ += std::holds_alternative<Exchange>(action) || std::holds_alternative<Reduce>(action) ||
                    std::holds_alternative<Broadcast>(action);
    }
    in_flight_ -= std::is_same_v<Event, ExchangeDone>;
    stopped_ = stopped_ || std::is_same_v<Event, Stopped>;
    log_->push_back({event, context.self, context.membership, context.seed, context.step, then.list(),
                     in_flight_ == 0 && (ordered || stopped_)});
  }
  std::unique_ptr<WorkerRule> rule_;
  std::shared_ptr<std::vector<WorkerTold>> log_;
  int in_flight_ = 0;
  bool stopped_ = false;
};

class RecordingServer final : public ServerRule {
 public:
  RecordingServer(std::unique_ptr<ServerRule> rule, std::shared_ptr<std::vector<ServerTold>> log)
      : rule_(std::move(rule)), log_(std::move(log)) {}
  void on(const Request& e, const ServerContext& c, ServerActions& t) override { open_.insert(e.id), note(e, c, t); }
  void on(const MembershipChanged& e, const ServerContext& c, ServerActions& t) override { note(e, c, t); }
  void on(const DeadlinePassed& e, const ServerContext& c, ServerActions& t) override { note(e, c, t); }

 private:
  template <class Event>
  void note(const Event& event, const ServerContext& context, ServerActions& then) {
    rule_->on(event, context, then);
    for (const auto& action : then.list()) {
      if (const auto* reply = std::get_if<Reply>(&action)) open_.erase(reply->request);
      if (const auto* drop = std::get_if<Drop>(&action)) open_.erase(drop->request);
    }
    log_->push_back({event, context.self, context.membership, context.version, then.list(), open_.empty()});
  }
  std::unique_ptr<ServerRule> rule_;
  std::shared_ptr<std::vector<ServerTold>> log_;
  std::set<RequestId> open_;
};

/// One log per rule, in the order of creation.
class Recorded final : public Strategy {
 public:
  explicit Recorded(const Strategy& strategy) : strategy_(strategy) {}
  Needs needs() const override { return strategy_.needs(); }
  std::unique_ptr<WorkerRule> worker() const override {
    return std::make_unique<RecordingWorker>(strategy_.worker(),
                                             workers_.emplace_back(std::make_shared<std::vector<WorkerTold>>()));
  }
  std::unique_ptr<ServerRule> server() const override {
    return std::make_unique<RecordingServer>(strategy_.server(),
                                             servers_.emplace_back(std::make_shared<std::vector<ServerTold>>()));
  }
  [[nodiscard]] const std::vector<std::shared_ptr<std::vector<WorkerTold>>>& workers() const { return workers_; }
  [[nodiscard]] const std::vector<std::shared_ptr<std::vector<ServerTold>>>& servers() const { return servers_; }

 private:
  const Strategy& strategy_;
  mutable std::vector<std::shared_ptr<std::vector<WorkerTold>>> workers_;
  mutable std::vector<std::shared_ptr<std::vector<ServerTold>>> servers_;
};

}  // namespace troupe::strategies
