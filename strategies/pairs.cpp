#include "strategies/pairs.hpp"

#include <algorithm>
#include <utility>

namespace troupe::strategies {

/// Fisher-Yates shuffle; neighbours are partners.
std::optional<WorkerId> partner_of(WorkerId self, std::vector<WorkerId> members, core::Random random) {
  for (std::size_t left = members.size(); left > 1; --left) std::swap(members[left - 1], members[random.below(left)]);
  for (std::size_t i = 0; i + 1 < members.size(); i += 2) {
    if (members[i] == self) return members[i + 1];
    if (members[i + 1] == self) return members[i];
  }
  return std::nullopt;
}

void PairsWorker::on(const Started&, const WorkerContext& context, WorkerActions& then) {
  if (members_.empty()) members_ = context.membership.workers;
  then.compute();
}

void PairsWorker::on(const StepDone& event, const WorkerContext& context, WorkerActions& then) {
  then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
  const Step steps = event.step + 1;
  if (steps % tau_ != 0) return then.compute();
  const auto partner = partner_of(context.self, members_, context.shared_random(steps / tau_));
  if (!partner) return then.compute();
  then.reduce(event.step, kParams, ReduceOp::mean, -1,
              {std::min(context.self, *partner), std::max(context.self, *partner)}, Rounding::none);
}

void PairsWorker::on(const ExchangeDone&, const WorkerContext&, WorkerActions& then) { then.compute(); }

std::string PairsWorker::state() const { return write_state({{"members", members_}}); }

core::Result<void> PairsWorker::restore(const std::string& text) { return read_state(text, {{"members", &members_}}); }

// ---- options

namespace {

const core::Table<PairsConfig>& pairs_table() {
  static const core::Table<PairsConfig> table{
      "strategy",
      {{"tau", &PairsConfig::tau, core::between(1, core::kMostCount), "local steps between two rounds of pairs"}}};
  return table;
}

class Pairs final : public Strategy {
 public:
  explicit Pairs(Step tau) : tau_(tau) {}
  Needs needs() const override {
    return {.group = true,
            .subgroups = true,
            .in_step = true,
            .model = ModelHome::weighted,
            .worker_state = WorkerState::discarded,
            .rounds = false,
            .local_steps = true,
            .periods = {{"strategy.tau", tau_}}};
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<PairsWorker>(tau_); }
  std::unique_ptr<ServerRule> server() const override { return nullptr; }

 private:
  Step tau_;
};

}  // namespace

StrategyInfo pairs() {
  return {.name = "pairs",
          .summary = "every tau steps random pairs of workers go on from their mean",
          .add_options = [](core::Schema& schema) { schema.add(pairs_table(), "pairs"); },
          .make = [](const core::Config& config, const RunShape&) -> core::Result<std::unique_ptr<Strategy>> {
            return std::make_unique<Pairs>(static_cast<Step>(config.get(pairs_table()).tau));
          },
          .option_space = [](const RunShape&) -> OptionSpace { return {.choices = {range("tau", 1, 3)}}; },
          .properties = [](const core::Config&, const RunShape&) -> Properties { return {MeansOfPairs{}}; }};
}

}  // namespace troupe::strategies
