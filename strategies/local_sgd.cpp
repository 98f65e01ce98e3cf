#include "strategies/local_sgd.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::strategies {

namespace {

constexpr Slot kSum = server_state(0);
constexpr Slot kVelocityOfCenter = server_state(1);

}  // namespace

Shards LocalSgdRule::shards(std::uint64_t fragment) const noexcept {
  const auto edge = [this](std::uint64_t f) { return static_cast<ShardId>(f * servers / fragments); };
  return {edge(fragment), edge(fragment + 1) - edge(fragment)};
}

// ---- worker rule

void LocalSgdWorker::on(const Started&, const WorkerContext&, WorkerActions& then) {
  then.apply(copy(kAnchor, kParams));
  then.compute();
}

void LocalSgdWorker::on(const StepDone& event, const WorkerContext&, WorkerActions& then) {
  then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
  stepped_ = true;
  const Step steps = event.step + 1;
  if (steps % rule_.period() == 0) {
    send(steps, rule_.turn(steps), then);
    in_flight_ = true;
    due_ = steps + rule_.delay;
  }
  if (steps != due_) return then.compute();
  if (in_flight_) {
    waiting_ = true;  // ExchangeDone computes
    return;
  }
  take(rule_.turn(steps - rule_.delay), then);
  due_ = 0;
  then.compute();
}

/// Between send() and take() the anchor is x as it was sent; at other times it is the centre.
void LocalSgdWorker::send(Step steps, std::uint64_t fragment, WorkerActions& then) {
  const auto shards = rule_.shards(fragment);
  then.apply(difference(staged(0), kAnchor, kParams), shards);
  then.apply(copy(kAnchor, kParams), shards);
  then.push_pull(steps * rule_.fragments + fragment, staged(0), shards);
}

void LocalSgdWorker::take(std::uint64_t fragment, WorkerActions& then) {
  const auto shards = rule_.shards(fragment);
  then.apply(axpy(kParams, -1, kAnchor), shards);
  then.apply(axpy(kParams, 1, staged(0)), shards);
  then.apply(copy(kAnchor, staged(0)), shards);
}

void LocalSgdWorker::on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) {
  const auto fragment = event.exchange % rule_.fragments;
  const bool regular = std::exchange(in_flight_, false);
  // A dropped answer is not taken, and the changes that were sent with it are not sent again.
  if (event.dropped) due_ = 0;
  const bool now = waiting_ || stopped_;
  if (now && !event.dropped) take(fragment, then);
  if (now && regular) due_ = 0;
  if (std::exchange(waiting_, false)) return then.compute();
  if (stopped_ && regular) hand_in_the_rest(context.step, then);
}

void LocalSgdWorker::on(const Stopped& event, const WorkerContext&, WorkerActions& then) {
  stopped_ = true;
  if (in_flight_) return;
  if (due_ > 0) take(rule_.turn(due_ - rule_.delay), then);
  due_ = 0;
  hand_in_the_rest(event.step, then);
}

void LocalSgdWorker::hand_in_the_rest(Step steps, WorkerActions& then) {
  if (!stepped_) return;
  const bool round_just_now = steps % rule_.period() == 0;
  for (std::uint64_t fragment = 0; fragment < rule_.fragments; ++fragment)
    if (!round_just_now || fragment != rule_.turn(steps)) send(steps, fragment, then);
}

std::string LocalSgdWorker::state() const {
  return write_state({{"due", due_}, {"stepped", stepped_}, {"stopped", stopped_}});
}

core::Result<void> LocalSgdWorker::restore(const std::string& text) {
  return read_state(text, {{"due", &due_}, {"stepped", &stepped_}, {"stopped", &stopped_}});
}

// ---- server rule

void LocalSgdServer::on(const Request& request, const ServerContext& context, ServerActions& then) {
  if (request.clock <= closed_) {
    if (late_++ == 0) then.apply(fill(kSum, 0));
    then.apply(axpy(kSum, 1, kPayload), request.id);
    then.apply(copy(kPayload, kCenter), request.id);
    return then.reply(request.id);
  }
  round_.emplace(request.worker, request);
  then.hold(request.id);
  close_if_complete(context.membership, then);
}

void LocalSgdServer::on(const MembershipChanged& event, const ServerContext&, ServerActions& then) {
  close_if_complete(event.membership, then);
}

/// A worker that contributed and was lost later still counts as a contributor.
bool LocalSgdServer::complete(const Membership& membership) const {
  const auto& live = membership.workers;
  const auto came = [this](WorkerId worker) { return round_.contains(worker); };
  const bool enough = rule_.quorum > 0 && round_.size() >= rule_.quorum;
  return !round_.empty() && (enough || std::all_of(live.begin(), live.end(), came));
}

void LocalSgdServer::close_if_complete(const Membership& membership, ServerActions& then) {
  if (!complete(membership)) return;
  std::vector<RequestId> requests;
  // All requests name the same number of steps. The minimum protects against a wrong one, which would make all others late for
  // ever.
  closed_ = std::ranges::min(round_ | std::views::values, {}, &Request::clock).clock;
  for (const auto& [worker, request] : round_) requests.push_back(request.id);
  const auto contributions = static_cast<float>(requests.size() + late_);
  if (late_ == 0) then.apply(fill(kSum, 0));
  then.apply(axpy(kSum, 1, kPayload), requests);
  then.apply(scale(kSum, 1 / contributions));
  then.apply(optimize(kCenter, kSum, kVelocityOfCenter, rule_.outer));
  then.apply(copy(kPayload, kCenter), requests);
  for (const auto request : requests) then.reply(request);
  round_.clear();
  late_ = 0;
}

std::string LocalSgdServer::state() const { return write_state({{"closed", closed_}, {"late", late_}}); }

core::Result<void> LocalSgdServer::restore(const std::string& text) {
  return read_state(text, {{"closed", &closed_}, {"late", &late_}});
}

// ---- options

namespace {

/// "1 for sgd, 0.7 for nesterov".
std::string default_rates() {
  std::vector<std::string> rates;
  for (const auto& row : core::kOptimizers)
    if (row.outer) rates.push_back(fmt::format("{} for {}", row.outer_lr, row.name));
  return fmt::format("{}", fmt::join(rates, ", "));
}

std::string with_momentum() {
  std::vector<std::string_view> names;
  for (const auto& row : core::kOptimizers)
    if (row.outer && row.momentum) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, " | "));
}

double outer_rate(const LocalSgdConfig& options) {
  return options.outer_lr > 0 ? options.outer_lr : core::optimizer_info(options.outer).outer_lr;
}

}  // namespace

core::Table<LocalSgdConfig> local_sgd_table(const LocalSgdConfig& defaults) {
  return {"strategy",
          {{"tau", &LocalSgdConfig::tau, core::between(1, core::kMostCount),
            "local steps between two rounds (the papers' H)"},
           {"outer", &LocalSgdConfig::outer, core::one_of(core::optimizer_names(&core::OptimizerInfo::outer)),
            "the centre's optimizer"},
           {"outer_lr", &LocalSgdConfig::outer_lr, core::between(0, core::kMostFloat),
            "its learning rate; 0: " + default_rates()},
           {"outer_momentum", &LocalSgdConfig::outer_momentum, core::between(0, 1),
            "outer = " + with_momentum() + ": its momentum"},
           {"fragments", &LocalSgdConfig::fragments, core::between(1, core::kMostCount),
            "exchange one of so many parts at a time, every tau / fragments steps"},
           {"delay", &LocalSgdConfig::delay, core::between(0, core::kMostCount),
            "steps that go on between sending and taking the answer"},
           {"quorum", &LocalSgdConfig::quorum, core::between(0, core::kMostCount),
            "contributions that close a round; 0: all members'"}},
          defaults};
}

namespace {

class LocalSgd final : public Strategy {
 public:
  explicit LocalSgd(const LocalSgdRule& rule) : rule_(rule) {}
  Needs needs() const override {
    const auto& outer = core::optimizer_info(rule_.outer.kind);
    return {.servers = true,
            .in_step = true,
            .model = ModelHome::center,
            .worker_state = WorkerState::discarded,
            .worker_slots = {kAnchor, staged(0)},
            .server_states = static_cast<std::uint8_t>(1 + outer.state_slots),
            .server_state_of = outer.state_slots > 0 ? fmt::format("outer {}", outer.name) : "",
            .local_steps = true,
            .periods = {{"strategy.tau", rule_.tau}}};
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<LocalSgdWorker>(rule_); }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<LocalSgdServer>(rule_); }

 private:
  LocalSgdRule rule_;
};

}  // namespace

core::Result<std::unique_ptr<Strategy>> make_local_sgd(const core::Config& config, const LocalSgdConfig& options,
                                                       const RunShape& shape) {
  const auto refuse = [&](const std::string& key, const std::string& why) {
    return core::fail(core::Errc::config,
                      config.where(key) + ": " + key + " = " + core::to_toml(config.value(key)) + " " + why);
  };
  const auto period = options.tau / options.fragments;
  if (options.fragments > shape.servers)
    return refuse("strategy.fragments", "needs as many shards: cluster.servers is " + std::to_string(shape.servers));
  if (options.tau % options.fragments != 0)
    return refuse("strategy.fragments", "must divide strategy.tau = " + std::to_string(options.tau) +
                                            ": one fragment every tau / fragments steps");
  if (options.delay >= period)
    return refuse("strategy.delay", "must be below strategy.tau / strategy.fragments = " + std::to_string(period) +
                                        ": an answer is taken before the next fragment is sent");
  if (options.quorum > shape.workers)
    return refuse("strategy.quorum", "is more than there are: cluster.workers is " + std::to_string(shape.workers));
  return std::make_unique<LocalSgd>(LocalSgdRule{.tau = static_cast<Step>(options.tau),
                                                 .fragments = static_cast<std::uint32_t>(options.fragments),
                                                 .delay = static_cast<Step>(options.delay),
                                                 .servers = shape.servers,
                                                 .quorum = static_cast<std::size_t>(options.quorum),
                                                 .outer = {.kind = core::optimizer_info(options.outer).kind,
                                                           .lr = static_cast<float>(outer_rate(options)),
                                                           .momentum = static_cast<float>(options.outer_momentum)}});
}

OptionSpace local_sgd_rounds(const RunShape& shape) {
  OptionSpace::Choice fragments;
  for (std::uint64_t count = 1; count <= std::min(shape.servers, 3U); ++count) {
    OptionSpace::Choice periods;
    for (std::uint64_t period = 1; period <= 3; ++period)
      periods.push_back({.set = {{"tau", std::to_string(count * period)}}, .choices = {range("delay", 0, period - 1)}});
    fragments.push_back({.set = {{"fragments", std::to_string(count)}}, .choices = {std::move(periods)}});
  }
  return {.choices = {std::move(fragments), {{.choices = {range("quorum", 0, shape.workers)}}, {}}}};
}

Properties local_sgd_properties(const LocalSgdConfig& options) {
  return {OuterRounds{.optimizer = core::optimizer_info(options.outer).kind,
                      .lr = outer_rate(options),
                      .momentum = options.outer_momentum,
                      .quorum = static_cast<std::size_t>(options.quorum)}};
}

/// The outer step multiplies the change of a local phase by lr, and its momentum repeats it: in the long run by lr / (1 − μ). In a long
/// phase the workers have gone further than one such step would take them; in short ones the two momenta add up. Measured with LeNet.
RateShare local_sgd_share(const LocalSgdConfig& options) {
  constexpr std::int64_t kLongPhase = 16;
  constexpr double kGainOfLong = 1.4, kGainOfShort = 0.5;
  const bool repeats = core::optimizer_info(options.outer).momentum && options.outer_momentum < 1;
  const double gain = outer_rate(options) / (repeats ? 1 - options.outer_momentum : 1);
  if (gain <= 1) return {};
  const double most = !repeats ? 1 : options.tau < kLongPhase ? kGainOfShort : kGainOfLong;
  return {std::min(most / gain, 1.0),
          fmt::format("the outer step multiplies the change of {} local steps by {:.3g}", options.tau, gain)};
}

std::vector<std::string> local_sgd_replayable_options() { return {"outer", "outer_lr", "outer_momentum"}; }

StrategyInfo local_sgd() {
  static const auto table = local_sgd_table({});
  return {
      .name = "local_sgd",
      .summary = "every tau steps the centre moves to the mean of all workers, and they go on from it",
      .add_options = [](core::Schema& schema) { schema.add(table, "local_sgd"); },
      .make = [](const core::Config& config,
                 const RunShape& shape) { return make_local_sgd(config, config.get(table), shape); },
      .option_space =
          [](const RunShape& shape) {
            auto space = local_sgd_rounds(shape);
            space.choices.push_back(values("outer", core::optimizer_names(&core::OptimizerInfo::outer)));
            return space;
          },
      .properties = [](const core::Config& config, const RunShape&) { return local_sgd_properties(config.get(table)); },
      .rate_share = [](const core::Config& config, const RunShape&) { return local_sgd_share(config.get(table)); },
      .replayable_options = local_sgd_replayable_options()};
}

}  // namespace troupe::strategies
