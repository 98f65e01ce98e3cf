#include "strategies/sync_easgd.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::strategies {

// ---- worker rule

void SyncEasgdWorker::on(const StepDone& event, const WorkerContext&, WorkerActions& then) {
  then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
  if ((event.step + 1) % tau_ != 0) return then.compute();
  then.push_pull(event.step, kParams, {}, Rounding::change);  // waits: ExchangeDone computes
}

void SyncEasgdWorker::on(const ExchangeDone&, const WorkerContext&, WorkerActions& then) { then.compute(); }

// ---- server rule

void SyncEasgdServer::on(const Request& request, const ServerContext& context, ServerActions& then) {
  const auto& live = context.membership.workers;
  if (std::find(live.begin(), live.end(), request.worker) == live.end()) {
    // Its round may be over: the request must not count in the next round.
    then.drop(request.id, "worker " + std::to_string(request.worker) + " was lost while it came");
    return;
  }
  round_.emplace(request.worker, request.id);
  then.hold(request.id);
  close_if_complete(context.membership, then);
}

void SyncEasgdServer::on(const MembershipChanged& event, const ServerContext&, ServerActions& then) {
  close_if_complete(event.membership, then);
}

/// It takes part with x = c: d = 0. The centre stays the same until the round is over.
void SyncEasgdServer::refused(const Request& request, const ServerContext& context, ServerActions& then) {
  then.apply(copy(kPayload, kCenter), request.id);
  on(request, context, then);
}

/// The round is over when every live member has arrived. A worker that arrived and was lost later still contributes.
void SyncEasgdServer::close_if_complete(const Membership& membership, ServerActions& then) {
  const auto& live = membership.workers;
  const auto came = [this](WorkerId worker) { return round_.contains(worker); };
  if (round_.empty() || !std::all_of(live.begin(), live.end(), came)) return;
  std::vector<RequestId> requests;  // in rank order
  for (const auto& [worker, request] : round_) requests.push_back(request);
  round_.clear();
  then.apply(fill(server_state(0), 0));
  then.apply(axpy(server_state(0), 1, kPayload), requests);
  then.apply(scale_add(kPayload, 1 - alpha_, alpha_, kCenter), requests);
  then.apply(scale_add(kCenter, 1 - static_cast<float>(requests.size()) * alpha_, alpha_, server_state(0)));
  for (const auto request : requests) then.reply(request);
}

// ---- options

namespace {

const core::Table<SyncEasgdConfig>& sync_easgd_table() {
  static const core::Table<SyncEasgdConfig> table{
      "strategy",
      {{"alpha", &SyncEasgdConfig::alpha, core::between(0, 1), "moving rate; 0: beta / workers"},
       {"beta", &SyncEasgdConfig::beta, core::between(0, 1), "moving rate of the centre towards the workers' mean"},
       {"tau", &SyncEasgdConfig::tau, core::between(1, core::kMostCount), "local steps between exchanges"}}};
  return table;
}

class SyncEasgd final : public Strategy {
 public:
  SyncEasgd(float alpha, Step tau) : alpha_(alpha), tau_(tau) {}
  Needs needs() const override {
    return {.servers = true,
            .in_step = true,
            .model = ModelHome::center,
            .worker_state = WorkerState::discarded,
            .server_states = 1,
            .local_steps = true,
            .periods = {{"strategy.tau", tau_}}};
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<SyncEasgdWorker>(tau_); }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<SyncEasgdServer>(alpha_); }

 private:
  float alpha_;
  Step tau_;
};

core::Result<std::unique_ptr<Strategy>> make_sync_easgd(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(sync_easgd_table());
  const double alpha = options.alpha > 0 ? options.alpha : options.beta / shape.workers;
  if (alpha * shape.workers > 1) {
    return core::fail(core::Errc::config,
                      config.where("strategy.alpha") +
                          ": strategy.alpha * cluster.workers is above 1: the centre would overshoot; at most " +
                          std::to_string(std::floor(1e6 / shape.workers) / 1e6) +
                          ", or leave it out and set strategy.beta");
  }
  return std::make_unique<SyncEasgd>(static_cast<float>(alpha), static_cast<Step>(options.tau));
}

OptionSpace sync_easgd_space(const RunShape&) {
  return {.choices = {range("tau", 1, 3), values("beta", {"0.5", "0.9", "1.0"})}};
}

Properties sync_easgd_properties(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(sync_easgd_table());
  return {SyncElasticRounds{.alpha = options.alpha > 0 ? options.alpha : options.beta / shape.workers}};
}

}  // namespace

StrategyInfo sync_easgd() {
  return {.name = "sync_easgd",
          .summary = "elastic averaging of all workers at the same step",
          .add_options = [](core::Schema& schema) { schema.add(sync_easgd_table(), "sync_easgd"); },
          .make = make_sync_easgd,
          .option_space = sync_easgd_space,
          .properties = sync_easgd_properties,
          .replayable_options = {"alpha", "beta"}};
}

}  // namespace troupe::strategies
