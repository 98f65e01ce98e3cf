#include "strategies/combined/averaged.hpp"

#include <utility>

namespace troupe::strategies {

namespace {

KernelCall follow(Slot average, float decay, Slot vector) { return scale_add(average, decay, 1 - decay, vector); }

/// The actions of another rule, and the average's after each of them that changes the centre.
class AveragedServer final : public ServerRule {
 public:
  AveragedServer(std::unique_ptr<ServerRule> inner, Slot slot, float decay)
      : inner_(std::move(inner)), slot_(slot), decay_(decay) {}
  void on(const Request& event, const ServerContext& context, ServerActions& then) override {
    tell(event, context, then);
  }
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override {
    tell(event, context, then);
  }
  void on(const DeadlinePassed& event, const ServerContext& context, ServerActions& then) override {
    tell(event, context, then);
  }
  void refused(const Request& request, const ServerContext& context, ServerActions& then) override {
    said_.clear();
    inner_->refused(request, context, said_);
    pass_on(then);
  }
  [[nodiscard]] std::string state() const override { return inner_->state(); }
  [[nodiscard]] core::Result<void> restore(const std::string& text) override { return inner_->restore(text); }

 private:
  template <class Event>
  void tell(const Event& event, const ServerContext& context, ServerActions& then) {
    said_.clear();
    inner_->on(event, context, said_);
    pass_on(then);
  }
  void pass_on(ServerActions& then) const {
    for (const auto& action : said_.list()) {
      then.add(action);
      const auto* const apply = std::get_if<Apply>(&action);
      if (apply && writes(apply->call, kCenter)) then.apply(follow(slot_, decay_, kCenter));
    }
  }

  std::unique_ptr<ServerRule> inner_;
  Slot slot_;
  float decay_;
  ServerActions said_;
};

/// The actions of another rule, and the average's before the step that follows another one. Its state is the other rule's: after Compute
/// or Stopped no update is owed.
class AveragedWorker final : public WorkerRule {
 public:
  AveragedWorker(std::unique_ptr<WorkerRule> inner, float decay) : inner_(std::move(inner)), decay_(decay) {}
  void on(const Started& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const BucketReady& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override {
    owed_ = true;
    tell(event, context, then);
  }
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const Replied& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const PeerMessageArrived& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const SendSkipped& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const MembershipChanged& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  void on(const DeadlinePassed& event, const WorkerContext& context, WorkerActions& then) override {
    tell(event, context, then);
  }
  [[nodiscard]] double weight() const noexcept override { return inner_->weight(); }
  [[nodiscard]] std::string state() const override { return inner_->state(); }
  [[nodiscard]] core::Result<void> restore(const std::string& text) override { return inner_->restore(text); }

 private:
  template <class Event>
  void tell(const Event& event, const WorkerContext& context, WorkerActions& then) {
    said_.clear();
    inner_->on(event, context, said_);
    for (const auto& action : said_.list()) {
      if (std::holds_alternative<Compute>(action) && std::exchange(owed_, false))
        then.apply(follow(kWorkerAverage, decay_, kParams));
      then.add(action);
    }
  }

  std::unique_ptr<WorkerRule> inner_;
  float decay_;
  bool owed_ = false;  // a step has ended, and the average has not followed it
  WorkerActions said_;
};

class Averaged final : public Strategy {
 public:
  Averaged(std::unique_ptr<Strategy> inner, double ema) : inner_(std::move(inner)), decay_(static_cast<float>(ema)) {
    const auto needs = inner_->needs();
    center_ = needs.model == ModelHome::center;
    slot_ = center_ ? server_state(needs.server_states) : kWorkerAverage;
  }
  Needs needs() const override {
    auto needs = inner_->needs();
    needs.model_slot = slot_;
    if (center_) {
      ++needs.server_states;
      needs.server_state_of += needs.server_state_of.empty() ? "ema" : " and ema";
    } else {
      needs.worker_slots.push_back(kWorkerAverage);
    }
    return needs;
  }
  std::unique_ptr<WorkerRule> worker() const override {
    auto rule = inner_->worker();
    if (center_) return rule;
    return std::make_unique<AveragedWorker>(std::move(rule), decay_);
  }
  std::unique_ptr<ServerRule> server() const override {
    auto rule = inner_->server();
    if (!center_) return rule;
    return std::make_unique<AveragedServer>(std::move(rule), slot_, decay_);
  }

 private:
  std::unique_ptr<Strategy> inner_;
  float decay_;
  bool center_ = true;
  Slot slot_;
};

}  // namespace

std::string_view without_average(std::string_view server_state_of) noexcept {
  for (const std::string_view average : {" and ema", "ema"})
    if (server_state_of.ends_with(average)) return server_state_of.substr(0, server_state_of.size() - average.size());
  return server_state_of;
}

std::unique_ptr<Strategy> averaged(std::unique_ptr<Strategy> strategy, double ema) {
  if (ema == 0) return strategy;
  return std::make_unique<Averaged>(std::move(strategy), ema);
}

}  // namespace troupe::strategies
