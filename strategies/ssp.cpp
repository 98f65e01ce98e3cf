#include "strategies/ssp.hpp"

#include <algorithm>
#include <limits>

namespace troupe::strategies {

namespace {

// Pushes have even ids, pulls odd ones; both hold the number of steps before them.
constexpr ExchangeId push_after(Step steps) { return 2 * steps; }
constexpr ExchangeId pull_after(Step steps) { return 2 * steps + 1; }
constexpr bool is_pull(ExchangeId id) { return id % 2 == 1; }

}  // namespace

// ---- worker rule

void SspWorker::on(const StepDone& event, const WorkerContext&, WorkerActions& then) {
  then.apply(optimize_delta(kParams, kGrads, kVelocity, event.optimizer));
  then.apply(axpy(kParams, 1, kGrads));
  if (rule_.sum() == kAcc) then.apply(axpy(kAcc, 1, kGrads));
  ++summed_;
  const Step steps = event.step + 1;
  if (steps % rule_.steps_per_clock != 0) return then.compute();
  if (pushing_) {
    due_ = true;
    return;
  }
  end_clock(steps, then);
}

void SspWorker::end_clock(Step steps, WorkerActions& then) {
  push(steps, then);
  if (rule_.overlap) begin_clock(steps, then);  // otherwise after the push
}

void SspWorker::push(Step steps, WorkerActions& then) {
  const Slot sum = rule_.sum();
  if (rule_.overlap) {
    then.apply(copy(staged(0), sum));
    if (sum == kAcc) then.apply(fill(kAcc, 0));
  }
  then.push(push_after(steps), rule_.overlap ? staged(0) : sum);
  pushing_ = true;
  summed_ = 0;
}

void SspWorker::begin_clock(Step steps, WorkerActions& then) {
  const Step clock = steps / rule_.steps_per_clock;
  if (clock <= read_clock_ + rule_.s) return then.compute();
  answered_ = std::numeric_limits<Step>::max();
  then.pull(pull_after(steps), kParams);  // waits: ExchangeDone computes
}

void SspWorker::on(const Replied& event, const WorkerContext&, WorkerActions&) {
  if (is_pull(event.exchange)) answered_ = std::min(answered_, event.min_clock);
}

void SspWorker::on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) {
  if (is_pull(event.exchange)) {
    read_clock_ = answered_;
    return then.compute();
  }
  pushing_ = false;
  if (!rule_.overlap && rule_.sum() == kAcc) then.apply(fill(kAcc, 0));
  if (stopped_) {
    if (summed_ > 0) push(context.step, then);
  } else if (due_) {
    due_ = false;
    end_clock(context.step, then);
  } else if (!rule_.overlap) {
    begin_clock(context.step, then);
  }
}

/// Pushes the steps of a clock that will not be completed.
void SspWorker::on(const Stopped& event, const WorkerContext&, WorkerActions& then) {
  stopped_ = true;
  if (summed_ > 0 && !pushing_) push(event.step, then);
}

std::string SspWorker::state() const {
  return write_state({{"read_clock", read_clock_}, {"summed", summed_}, {"stopped", stopped_}});
}

core::Result<void> SspWorker::restore(const std::string& text) {
  return read_state(text, {{"read_clock", &read_clock_}, {"summed", &summed_}, {"stopped", &stopped_}});
}

// ---- server rule

void SspServer::on(const Request& request, const ServerContext& context, ServerActions& then) {
  welcome(context.membership);
  if (request.kind == Transfer::push) {
    then.apply(axpy(kCenter, 1, kPayload), request.id);
    then.reply(request.id);
    clocks_[request.worker] = request.clock / rule_.steps_per_clock;
  } else {
    then.hold(request.id);
    held_.push_back(request);
  }
  release(context.membership, then);
}

void SspServer::on(const MembershipChanged& event, const ServerContext&, ServerActions& then) {
  welcome(event.membership);
  release(event.membership, then);
}

/// A newcomer's clock is the lowest clock of the other members, whatever it pushed before.
void SspServer::welcome(const Membership& membership) {
  if (members_ == membership.workers) return;
  const auto known = [this](WorkerId worker) { return std::binary_search(members_.begin(), members_.end(), worker); };
  auto minimum = std::numeric_limits<Step>::max();
  for (const auto worker : membership.workers)
    if (known(worker)) minimum = std::min(minimum, clocks_[worker]);
  for (const auto worker : membership.workers)
    if (!known(worker) && minimum != std::numeric_limits<Step>::max()) clocks_[worker] = minimum;
  members_ = membership.workers;
}

/// Answers the pulls that the slowest member's clock allows.
void SspServer::release(const Membership& membership, ServerActions& then) {
  Step minimum = std::numeric_limits<Step>::max();
  for (const auto worker : membership.workers) minimum = std::min(minimum, clocks_[worker]);
  std::erase_if(held_, [&](const Request& pull) {
    const Step clock = pull.clock / rule_.steps_per_clock;
    if (clock > rule_.s && clock - rule_.s > minimum) return false;
    then.apply(copy(kPayload, kCenter), pull.id);
    then.reply(pull.id, minimum);
    return true;
  });
}

std::string SspServer::state() const { return write_state({{"clocks", clocks_}, {"members", members_}}); }

core::Result<void> SspServer::restore(const std::string& text) {
  return read_state(text, {{"clocks", &clocks_}, {"members", &members_}});
}

// ---- options

namespace {

const core::Table<SspConfig>& ssp_table() {
  static const core::Table<SspConfig> table{
      "strategy",
      {{"s", &SspConfig::s, core::between(0, core::kMostCount), "clocks that a worker may be ahead of the slowest"},
       {"steps_per_clock", &SspConfig::steps_per_clock, core::between(1, core::kMostCount),
        "local steps that make up a clock"},
       {"overlap", &SspConfig::overlap, core::one_of({"off", "wait"}),
        "push while computing; wait for the one before when the next is due"}}};
  return table;
}

class Ssp final : public Strategy {
 public:
  explicit Ssp(const SspRule& rule) : rule_(rule) {}
  Needs needs() const override {
    Needs needs{.servers = true,
                .in_step = true,
                .model = ModelHome::center,
                .worker_state = WorkerState::discarded,
                .periods = {{"strategy.steps_per_clock", rule_.steps_per_clock}}};
    if (rule_.sum() == kAcc) needs.worker_slots.push_back(kAcc);
    if (rule_.overlap) needs.worker_slots.push_back(staged(0));
    return needs;
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<SspWorker>(rule_); }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<SspServer>(rule_); }

 private:
  SspRule rule_;
};

core::Result<std::unique_ptr<Strategy>> make_ssp(const core::Config& config, const RunShape&) {
  const auto options = config.get(ssp_table());
  return std::make_unique<Ssp>(SspRule{.s = static_cast<Step>(options.s),
                                       .steps_per_clock = static_cast<Step>(options.steps_per_clock),
                                       .overlap = options.overlap == "wait"});
}

OptionSpace ssp_space(const RunShape&) {
  return {.choices = {range("s", 0, 3), range("steps_per_clock", 1, 3), values("overlap", {"off", "wait"})}};
}

Properties ssp_properties(const core::Config& config, const RunShape&) {
  const auto options = config.get(ssp_table());
  return {PushesCount{}, BoundedClocks{.s = static_cast<Step>(options.s),
                                       .steps_per_clock = static_cast<Step>(options.steps_per_clock)}};
}

}  // namespace

StrategyInfo ssp() {
  return {.name = "ssp",
          .summary = "stale-synchronous: workers push every clock and are at most s clocks ahead of the slowest",
          .add_options = [](core::Schema& schema) { schema.add(ssp_table(), "ssp"); },
          .make = make_ssp,
          .option_space = ssp_space,
          .properties = ssp_properties,
          .rate_share = [](const core::Config&, const RunShape& shape) { return share_of_pushes(shape.workers); }};
}

}  // namespace troupe::strategies
