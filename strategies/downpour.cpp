#include "strategies/downpour.hpp"

#include <algorithm>

namespace troupe::strategies {

namespace {

// Pushes have even ids, fetches odd ones.
constexpr ExchangeId push_of(Step step) { return 2 * step; }
constexpr ExchangeId fetch_of(Step step) { return 2 * step + 1; }
constexpr bool is_push(ExchangeId id) { return id % 2 == 0; }

}  // namespace

// ---- worker rule

void DownpourWorker::on(const StepDone& event, const WorkerContext&, WorkerActions& then) {
  if (rule_.local_steps) {
    then.apply(optimize_delta(kParams, kGrads, kVelocity, event.optimizer));
    then.apply(axpy(kParams, 1, kGrads));
  } else {
    then.apply(clip(kGrads, event.optimizer));
  }
  if (rule_.sum() != kGrads) then.apply(axpy(kAcc, 1, kGrads));
  ++summed_;
  if ((event.step + 1) % rule_.n_push == 0) push(event.step, then);
  if ((event.step + 1) % rule_.n_fetch == 0) fetch(event.step, then);
  if (rule_.overlap || (!pushing_ && !fetching_)) then.compute();
}

void DownpourWorker::push(Step step, WorkerActions& then) {
  if (pushing_) return then.skip();
  const Slot sum = rule_.sum();
  if (!rule_.local_steps && summed_ > 1) then.apply(scale(sum, 1.0F / static_cast<float>(summed_)));
  if (rule_.overlap) {
    then.apply(copy(staged(0), sum));
    then.apply(fill(sum, 0));
  }
  then.push(push_of(step), rule_.overlap ? staged(0) : sum);
  pushing_ = true;
  summed_ = 0;
}

void DownpourWorker::fetch(Step step, WorkerActions& then) {
  if (fetching_) return then.skip();
  then.pull(fetch_of(step), rule_.overlap ? staged(1) : kParams);
  fetching_ = true;
}

void DownpourWorker::on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) {
  if (is_push(event.exchange)) {
    pushing_ = false;
    if (!rule_.overlap && rule_.sum() != kGrads) then.apply(fill(kAcc, 0));
    if (stopped_ && summed_ > 0) push(context.step, then);
  } else {
    fetching_ = false;
    if (rule_.overlap && !event.dropped) then.apply(copy(kParams, staged(1)));
  }
  if (!rule_.overlap && !stopped_ && !pushing_ && !fetching_) then.compute();
}

/// Pushes the steps that no push has carried yet.
void DownpourWorker::on(const Stopped& event, const WorkerContext&, WorkerActions& then) {
  stopped_ = true;
  if (summed_ > 0 && !pushing_) push(event.step, then);
}

std::string DownpourWorker::state() const { return write_state({{"summed", summed_}, {"stopped", stopped_}}); }

core::Result<void> DownpourWorker::restore(const std::string& text) {
  return read_state(text, {{"summed", &summed_}, {"stopped", &stopped_}});
}

// ---- server rule

void DownpourServer::on(const Request& request, const ServerContext& context, ServerActions& then) {
  if (request.kind == Transfer::pull) {
    then.apply(copy(kPayload, kCenter), request.id);
  } else {
    const auto staleness = static_cast<float>(std::max<Version>(context.version - request.version, 1));
    const float share = staleness_aware_ ? 1 / staleness : 1;
    if (optimizer_) {
      auto step = *optimizer_;
      step.lr = request.lr * share;
      step.t = context.version + 1;
      then.apply(optimize(kCenter, kPayload, server_state(0), step), request.id);
    } else {
      then.apply(axpy(kCenter, share, kPayload), request.id);
    }
  }
  then.reply(request.id);
}

/// The centre does not move, not even by its momentum.
void DownpourServer::refused(const Request& request, const ServerContext&, ServerActions& then) {
  then.drop(request.id, "the push holds numbers that cannot be used");
}

// ---- options

namespace {

/// The value of server_optimizer with which workers step.
constexpr const char* kNone = "none";

std::vector<std::string> or_none(std::vector<std::string> optimizers) {
  optimizers.insert(optimizers.begin(), kNone);
  return optimizers;
}

const core::Table<DownpourConfig>& downpour_table() {
  using core::between;
  using core::kMostCount;
  static const core::Table<DownpourConfig> table{
      "strategy",
      {{"n_push", &DownpourConfig::n_push, between(1, kMostCount), "local steps between two pushes of their sum"},
       {"n_fetch", &DownpourConfig::n_fetch, between(1, kMostCount), "local steps between two fetches of the centre"},
       {"server_optimizer", &DownpourConfig::server_optimizer,
        core::one_of(or_none(core::optimizer_names(&core::OptimizerInfo::on_servers))),
        "none: workers step and the server adds; else the server steps, with train's numbers"},
       {"staleness_aware", &DownpourConfig::staleness_aware, core::anything(),
        "the server divides a step by its staleness"},
       {"overlap", &DownpourConfig::overlap, core::one_of({"off", "skip"}),
        "transfer while computing; skip one that falls due while its like is in flight"}}};
  return table;
}

class Downpour final : public Strategy {
 public:
  Downpour(const DownpourRule& rule, std::optional<core::OptimizerStep> optimizer, std::string optimizer_name,
           bool staleness_aware)
      : rule_(rule),
        optimizer_(optimizer),
        optimizer_name_(std::move(optimizer_name)),
        staleness_aware_(staleness_aware) {}
  Needs needs() const override {
    Needs needs{.servers = true,
                .model = ModelHome::center,
                .worker_state = WorkerState::discarded,
                .periods = {{"strategy.n_push", rule_.n_push}, {"strategy.n_fetch", rule_.n_fetch}}};
    if (rule_.sum() == kAcc) needs.worker_slots.push_back(kAcc);
    if (rule_.overlap) needs.worker_slots.insert(needs.worker_slots.end(), {staged(0), staged(1)});
    if (optimizer_ && core::state_slots(optimizer_->kind) > 0) {
      needs.server_states = static_cast<std::uint8_t>(core::state_slots(optimizer_->kind));
      needs.server_state_of = optimizer_name_;
    }
    return needs;
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<DownpourWorker>(rule_); }
  std::unique_ptr<ServerRule> server() const override {
    return std::make_unique<DownpourServer>(optimizer_, staleness_aware_);
  }

 private:
  DownpourRule rule_;
  std::optional<core::OptimizerStep> optimizer_;
  std::string optimizer_name_;
  bool staleness_aware_;
};

std::optional<core::OptimizerStep> server_optimizer(const std::string& name, const RunShape& shape) {
  if (name == kNone) return std::nullopt;
  auto step = shape.optimizer;
  step.kind = core::with_epsilon(core::optimizer_info(name), shape.epsilon_inside);
  step.clip_value = step.clip_norm = 0;  // the workers clip: a shard sees a slice only
  return step;
}

core::Result<std::unique_ptr<Strategy>> make_downpour(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(downpour_table());
  const auto optimizer = server_optimizer(options.server_optimizer, shape);
  const DownpourRule rule{.n_push = static_cast<Step>(options.n_push),
                          .n_fetch = static_cast<Step>(options.n_fetch),
                          .local_steps = !optimizer,
                          .overlap = options.overlap == "skip"};
  return std::make_unique<Downpour>(rule, optimizer, options.server_optimizer, options.staleness_aware);
}

OptionSpace downpour_space(const RunShape&) {
  // Workers that step are drawn more often: the search then knows where the centre must be.
  auto optimizers = or_none(or_none(core::optimizer_names(&core::OptimizerInfo::searched)));
  return {.choices = {range("n_push", 1, 3), range("n_fetch", 1, 3), values("server_optimizer", optimizers),
                      values("staleness_aware", {"true", "false"}), values("overlap", {"off", "skip"})}};
}

Properties downpour_properties(const core::Config& config, const RunShape&) {
  const auto options = config.get(downpour_table());
  return {
      PushesCount{.server_optimizer = options.server_optimizer != kNone, .staleness_aware = options.staleness_aware}};
}

/// A push divided by its staleness, about N − 1, leaves two workers' worth of steps at any size.
RateShare downpour_share(const core::Config& config, const RunShape& shape) {
  constexpr std::uint32_t kWorth = 2;
  return share_of_pushes(config.get(downpour_table()).staleness_aware ? std::min(shape.workers, kWorth)
                                                                      : shape.workers);
}

}  // namespace

StrategyInfo downpour() {
  return {.name = "downpour",
          .summary = "workers push sums of their steps to the centre and fetch it, each on its own period",
          .add_options = [](core::Schema& schema) { schema.add(downpour_table(), "downpour"); },
          .make = make_downpour,
          .option_space = downpour_space,
          .properties = downpour_properties,
          .rate_share = downpour_share,
          .replayable_options = {"server_optimizer", "staleness_aware"}};
}

}  // namespace troupe::strategies
