#include "strategies/bsp.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/bsp_backup.hpp"

namespace troupe::strategies {

void BspWorker::on(const BucketReady& event, const WorkerContext&, WorkerActions& then) {
  if (combine_ != Combine::gradients) return;
  in_buckets_ = true;
  ++pending_;
  then.reduce(static_cast<ExchangeId>(event.bucket), kGrads, ReduceOp::mean, event.bucket);
}

void BspWorker::on(const StepDone& event, const WorkerContext&, WorkerActions& then) {
  stepped_ = true;
  optimizer_ = event.optimizer;
  if (combine_ == Combine::gradients && !in_buckets_) {
    then.reduce(0, kGrads, ReduceOp::mean);
    pending_ = 1;
  } else if (combine_ != Combine::gradients) {
    // All x are bit-identical before the step, so their mean after it is x plus the mean of the changes.
    then.apply(optimize_delta(kParams, kGrads, kVelocity, optimizer_));
    then.reduce(0, kGrads, combine_ == Combine::updates ? ReduceOp::sum : ReduceOp::mean);
    pending_ = 1;
    if (average_velocity_) {
      then.reduce(1, kVelocity, ReduceOp::mean, -1, {}, Rounding::none);
      pending_ = 2;
    }
  }
  finish_when_all_are_in(then);
}

void BspWorker::on(const ExchangeDone&, const WorkerContext&, WorkerActions& then) {
  --pending_;
  finish_when_all_are_in(then);
}

void BspWorker::finish_when_all_are_in(WorkerActions& then) {
  if (!stepped_ || pending_ > 0) return;
  stepped_ = in_buckets_ = false;
  if (combine_ == Combine::gradients) then.apply(optimize(kParams, kGrads, kVelocity, optimizer_));
  if (combine_ != Combine::gradients) then.apply(axpy(kParams, 1, kGrads));
  then.compute();
}

namespace {

const core::Table<BspConfig>& bsp_table() {
  static const core::Table<BspConfig> table{
      "strategy",
      {{"combine", &BspConfig::combine, core::one_of({"gradients", "updates", "weights"}),
        "what is combined over the workers at each step"},
       {"average_momentum", &BspConfig::average_momentum, core::anything(),
        "combine = weights: average the velocities too"},
       {"backup", &BspConfig::backup, core::between(0, core::kMostCount),
        "combine = gradients: number of backup workers: a step completes without the slowest N"}}};
  return table;
}

class Bsp final : public Strategy {
 public:
  Bsp(BspWorker::Combine combine, bool average_velocity, bool has_velocity)
      : combine_(combine), average_velocity_(average_velocity), has_velocity_(has_velocity) {}
  Needs needs() const override {
    std::optional<ChangedArithmetic> changed;
    if (combine_ == BspWorker::Combine::weights) changed = {.since = 2, .key = "strategy.combine"};
    // Parameters are equal on all workers after each step. So is a velocity that is fed with combined gradients or is combined
    // itself.
    const bool equal = !has_velocity_ || combine_ == BspWorker::Combine::gradients || average_velocity_;
    return {.group = true,
            .in_step = true,
            .model = ModelHome::any_worker,
            .worker_state = equal ? WorkerState::replicated : WorkerState::per_worker,
            .whole_steps = equal && !average_velocity_,
            .changed_arithmetic = changed};
  }
  std::unique_ptr<WorkerRule> worker() const override {
    return std::make_unique<BspWorker>(combine_, average_velocity_);
  }
  std::unique_ptr<ServerRule> server() const override { return nullptr; }

 private:
  BspWorker::Combine combine_;
  bool average_velocity_;
  bool has_velocity_;
};

core::Result<std::unique_ptr<Strategy>> make_bsp(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(bsp_table());
  if (options.average_momentum && options.combine != "weights") {
    return core::fail(core::Errc::config,
                      config.where("strategy.average_momentum") +
                          ": strategy.average_momentum = true needs strategy.combine = \"weights\"");
  }
  if (options.backup > 0 && options.combine != "gradients") {
    return core::fail(core::Errc::config, config.where("strategy.backup") +
                                              ": strategy.backup needs strategy.combine = \"gradients\": only a "
                                              "gradient can be left out without its worker drifting off");
  }
  if (options.backup >= shape.workers) {
    return core::fail(core::Errc::config,
                      config.where("strategy.backup") + ": strategy.backup = " + std::to_string(options.backup) +
                          " leaves no worker to wait for: cluster.workers is " + std::to_string(shape.workers));
  }
  if (options.backup > 0) return make_bsp_with_backup(static_cast<std::size_t>(options.backup), shape);
  const auto combine = options.combine == "gradients" ? BspWorker::Combine::gradients
                       : options.combine == "updates" ? BspWorker::Combine::updates
                                                      : BspWorker::Combine::weights;
  const auto& optimizer = core::optimizer_info(shape.optimizer.kind);
  const bool has_state = optimizer.state_slots > 0;
  if (options.average_momentum && has_state && !optimizer.velocity) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: strategy.average_momentum = true needs an optimizer with momentum: "
                                  "train.optimizer = \"{}\"",
                                  config.where("strategy.average_momentum"),
                                  fmt::join(core::optimizer_names(&core::OptimizerInfo::velocity), "\" or \"")));
  }
  return std::make_unique<Bsp>(combine, options.average_momentum && has_state, has_state);
}

OptionSpace bsp_space(const RunShape& shape) {
  OptionSpace combined{
      .choices = {{{.set = {{"combine", "gradients"}}},
                   {.set = {{"combine", "updates"}}},
                   {.set = {{"combine", "weights"}}, .choices = {values("average_momentum", {"true", "false"})}}}}};
  if (shape.workers == 1) return combined;
  return {.choices = {{{.choices = {range("backup", 1, shape.workers - 1)}}, std::move(combined)}}};
}

Properties bsp_properties(const core::Config& config, const RunShape&) {
  const auto options = config.get(bsp_table());
  Properties all{EqualReplicas{}};
  if (options.backup > 0) all.emplace_back(BackupSteps{.backup = static_cast<std::size_t>(options.backup)});
  return all;
}

/// Only sums of updates grow with the workers.
RateShare bsp_share(const core::Config& config, const RunShape& shape) {
  if (config.get(bsp_table()).combine != "updates" || shape.workers <= 1) return {};
  return {1.0 / shape.workers, fmt::format("the updates of {} workers are summed", shape.workers)};
}

}  // namespace

StrategyInfo bsp() {
  return {.name = "bsp",
          .summary = "bulk-synchronous: gradients, updates or weights are combined over all workers at every step",
          .add_options = [](core::Schema& schema) { schema.add(bsp_table(), "bsp"); },
          .make = make_bsp,
          .option_space = bsp_space,
          .properties = bsp_properties,
          .rate_share = bsp_share};
}

}  // namespace troupe::strategies
