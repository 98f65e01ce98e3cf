#include "strategies/easgd.hpp"

#include <algorithm>

namespace troupe::strategies {

ElasticRates::Pair ElasticRates::at(double epoch) const noexcept {
  if (schedule.empty()) return {static_cast<float>(alpha_worker), static_cast<float>(alpha_server)};
  const auto index = std::min(static_cast<std::size_t>(std::max(epoch, 0.0)), schedule.size() - 1);
  return {static_cast<float>(schedule[index]), static_cast<float>(schedule[index])};
}

// ---- worker rule

void EasgdWorker::on(const StepDone& event, const WorkerContext&, WorkerActions& then) {
  then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
  momentum_ = event.optimizer.momentum;
  if ((event.step + 1) % tau_ != 0) return then.compute();
  if (overlap_ == Overlap::off) {
    if (gradient_ == Gradient::at_lookahead) then.apply(axpy(kParams, -momentum_, kVelocity));
    return then.push_pull(event.step, kParams, {}, Rounding::change);  // waits: ExchangeDone computes
  }
  if (!in_flight_) {
    send_copy(event.step, then);
    return then.compute();
  }
  if (overlap_ == Overlap::skip) {
    then.skip();
    return then.compute();
  }
  waiting_ = true;
  due_ = event.step;
}

void EasgdWorker::on(const ExchangeDone& event, const WorkerContext&, WorkerActions& then) {
  if (overlap_ == Overlap::off) {
    if (gradient_ == Gradient::at_lookahead) then.apply(axpy(kParams, momentum_, kVelocity));
    return then.compute();
  }
  in_flight_ = false;
  if (!event.dropped) then.apply(axpy(kParams, -1, staged(0)));  // the answer is α_w d
  if (!waiting_) return;
  waiting_ = false;
  send_copy(due_, then);
  then.compute();
}

void EasgdWorker::send_copy(Step step, WorkerActions& then) {
  then.apply(copy(staged(0), kParams));
  if (gradient_ == Gradient::at_lookahead) then.apply(axpy(staged(0), -momentum_, kVelocity));
  then.push_pull(step, staged(0), {}, Rounding::answer);
  in_flight_ = true;
}

// ---- server rule

void EasgdServer::on(const Request& request, const ServerContext&, ServerActions& then) {
  const auto alpha = rates_.at(request.epoch);
  then.apply(overlap_ == Overlap::off ? elastic_pair(kPayload, kCenter, alpha.worker, alpha.server)
                                      : elastic_delta(kPayload, kCenter, alpha.worker, alpha.server),
             request.id);
  then.reply(request.id);
}

/// With x = c, d = 0: the centre stays, and a waiting worker continues from the centre.
void EasgdServer::refused(const Request& request, const ServerContext& context, ServerActions& then) {
  then.apply(copy(kPayload, kCenter), request.id);
  on(request, context, then);
}

// ---- options

core::Table<EasgdConfig> easgd_table(const EasgdConfig& defaults) {
  using core::between;
  return {"strategy",
          {{"alpha", &EasgdConfig::alpha, between(0, 1), "moving rate of worker and centre"},
           {"alpha_worker", &EasgdConfig::alpha_worker, between(-1, 1), "moving rate of the worker alone (-1: alpha)"},
           {"alpha_server", &EasgdConfig::alpha_server, between(-1, 1), "moving rate of the centre alone (-1: alpha)"},
           {"beta", &EasgdConfig::beta, between(0, core::kMostFloat),
            "when above 0: alpha = beta / workers, as the theory has it (0.9)"},
           {"alpha_schedule", &EasgdConfig::alpha_schedule, between(0, 1),
            "moving rate epoch by epoch; the last one stays"},
           {"tau", &EasgdConfig::tau, between(1, core::kMostCount), "local steps between exchanges"},
           {"overlap", &EasgdConfig::overlap, core::one_of({"off", "skip", "wait"}),
            "exchange while computing; skip or wait for the one before when the next is due"}},
          defaults};
}

namespace {

class Easgd final : public Strategy {
 public:
  Easgd(ElasticRates rates, Step tau, Overlap overlap, Gradient gradient)
      : rates_(std::move(rates)), tau_(tau), overlap_(overlap), gradient_(gradient) {}
  Needs needs() const override {
    return {.servers = true,
            .model = ModelHome::center,
            .worker_state = WorkerState::discarded,
            .worker_slots = overlap_ == Overlap::off ? std::vector<Slot>{} : std::vector<Slot>{staged(0)},
            .local_steps = gradient_ == Gradient::at_x,
            .periods = {{"strategy.tau", tau_}}};
  }
  std::unique_ptr<WorkerRule> worker() const override {
    return std::make_unique<EasgdWorker>(tau_, overlap_, gradient_);
  }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<EasgdServer>(rates_, overlap_); }

 private:
  ElasticRates rates_;
  Step tau_;
  Overlap overlap_;
  Gradient gradient_;
};

}  // namespace

core::Result<std::unique_ptr<Strategy>> make_easgd(const core::Config& config, const EasgdConfig& options,
                                                   const RunShape& shape, Gradient gradient) {
  const double alpha = options.beta > 0 ? options.beta / shape.workers : options.alpha;
  if (alpha > 1) {
    return core::fail(
        core::Errc::config,
        config.where("strategy.beta") + ": strategy.beta / cluster.workers is above 1: the centre would overshoot");
  }
  if (options.beta > 0 && !options.alpha_schedule.empty()) {
    return core::fail(core::Errc::config,
                      config.where("strategy.beta") + ": strategy.beta and strategy.alpha_schedule exclude each other");
  }
  for (const auto& [key, rate] :
       {std::pair{"strategy.alpha_worker", options.alpha_worker}, {"strategy.alpha_server", options.alpha_server}}) {
    if (rate < 0 && rate != -1)
      return core::fail(core::Errc::config,
                        config.where(key) + ": " + key + " must be between 0 and 1, or -1 for strategy.alpha");
    if (rate >= 0 && !options.alpha_schedule.empty()) {
      return core::fail(core::Errc::config,
                        config.where(key) + ": " + key +
                            " and strategy.alpha_schedule exclude each other: the schedule moves both rates");
    }
  }
  ElasticRates rates{.alpha_worker = options.alpha_worker < 0 ? alpha : options.alpha_worker,
                     .alpha_server = options.alpha_server < 0 ? alpha : options.alpha_server,
                     .schedule = options.alpha_schedule};
  const auto overlap = options.overlap == "off"    ? Overlap::off
                       : options.overlap == "skip" ? Overlap::skip
                                                   : Overlap::wait;
  return std::make_unique<Easgd>(std::move(rates), static_cast<Step>(options.tau), overlap, gradient);
}

OptionSpace easgd_timing() { return {.choices = {range("tau", 1, 3), values("overlap", {"off", "skip", "wait"})}}; }

OptionSpace easgd_space(const RunShape&) {
  auto space = easgd_timing();
  space.choices.push_back({{.choices = {values("alpha", {"0.25", "0.5", "1.0"})}},
                           {.set = {{"alpha_worker", "0.9"}, {"alpha_server", "0.1"}}},
                           {.set = {{"beta", "0.9"}}},
                           {.set = {{"alpha_schedule", "[0.5, 0.125]"}}}});
  return space;
}

Properties easgd_properties(const EasgdConfig& options, const RunShape& shape) {
  const double alpha = options.beta > 0 ? options.beta / shape.workers : options.alpha;
  const auto or_alpha = [alpha](double rate) { return rate < 0 ? alpha : rate; };
  return {ElasticExchanges{.alpha_worker = or_alpha(options.alpha_worker),
                           .alpha_server = or_alpha(options.alpha_server),
                           .schedule = options.alpha_schedule}};
}

std::vector<std::string> easgd_replayable_options() {
  return {"alpha", "alpha_worker", "alpha_server", "beta", "alpha_schedule"};
}

StrategyInfo easgd() {
  static const auto table = easgd_table({});
  return {.name = "easgd",
          .summary = "elastic averaging: every tau steps a worker and the centre pull at each other by alpha",
          .add_options = [](core::Schema& schema) { schema.add(table, "easgd"); },
          .make = [](const core::Config& config,
                     const RunShape& shape) { return make_easgd(config, config.get(table), shape, Gradient::at_x); },
          .option_space = easgd_space,
          .properties = [](const core::Config& config,
                           const RunShape& shape) { return easgd_properties(config.get(table), shape); },
          .replayable_options = easgd_replayable_options()};
}

}  // namespace troupe::strategies
