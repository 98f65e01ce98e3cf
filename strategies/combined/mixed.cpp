#include "strategies/combined/mixed.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "strategies/combined/averaged.hpp"
#include "strategies/downpour.hpp"
#include "strategies/easgd.hpp"
#include "strategies/host/journal_codec.hpp"
#include "strategies/ssp.hpp"

namespace troupe::strategies {

namespace {

// Ids of the group's own exchanges: above all ids of an inner strategy.
constexpr ExchangeId kAverage = ~ExchangeId{0};
constexpr ExchangeId kSpread = kAverage - 1;

}  // namespace

Group Grouping::members_of(WorkerId worker, const Membership& members) const {
  Group group;
  for (const auto member : members.workers)
    if (group_of(member) == group_of(worker)) group.push_back(member);
  return group;
}

Membership Grouping::groups(const Membership& members) const {
  Membership groups{members.epoch, {}};
  for (const auto member : members.workers)
    if (groups.workers.empty() || groups.workers.back() != group_of(member)) groups.workers.push_back(group_of(member));
  return groups;
}

// ---- worker rule

void MixedWorker::on(const Started& event, const WorkerContext& context, WorkerActions& then) {
  if (members_.empty()) members_ = grouping_.members_of(context.self, context.membership);
  leads(context) ? tell_inner(event, context, then) : begin_step(then);
}

void MixedWorker::on(const StepDone& event, const WorkerContext& context, WorkerActions& then) {
  then.apply(clip(kGrads, event.optimizer));
  step_ = event;
  step_.optimizer.clip_value = step_.optimizer.clip_norm = 0;
  if (members_.size() == 1) return end_inner_step(step_, context, then);
  then.reduce(kAverage, kGrads, ReduceOp::mean, -1, members_);
}

void MixedWorker::on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) {
  if (event.exchange == kSpread) return then.compute();
  if (event.exchange != kAverage) return hear(event, context, then);
  leads(context) ? end_inner_step(step_, context, then) : begin_step(then);
}

/// Members ask for the broadcast at once and wait for the leader, which joins when the inner strategy asks for Compute.
void MixedWorker::begin_step(WorkerActions& then) {
  if (members_.size() == 1) return then.compute();
  then.broadcast(kSpread, kParams, members_.front(), members_);
}

/// The inner strategy must not touch vectors while the group averages or broadcasts them.
void MixedWorker::hear(WorkerEvent event, const WorkerContext& context, WorkerActions& then) {
  if (inner_computes_) return late_.push_back(std::move(event));
  tell_inner(event, context, then);
}

void MixedWorker::end_inner_step(const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
  inner_computes_ = false;
  for (const auto& late : std::exchange(late_, {})) tell_inner(late, context, then);
  tell_inner(event, context, then);
}

void MixedWorker::tell_inner(const WorkerEvent& event, const WorkerContext& context, WorkerActions& then) {
  const auto groups = grouping_.groups(context.membership);
  const WorkerContext of_group{grouping_.group_of(context.self), groups, context.seed, context.step};
  WorkerActions said;
  std::visit([&](const auto& e) { inner_->on(e, of_group, said); }, event);
  for (const auto& action : said.list()) {
    if (!std::holds_alternative<Compute>(action)) {
      then.add(action);
    } else {
      inner_computes_ = true;
      begin_step(then);
    }
  }
}

void MixedWorker::on(const Stopped& event, const WorkerContext& context, WorkerActions& then) {
  if (leads(context)) end_inner_step(event, context, then);
}

void MixedWorker::on(const Replied& event, const WorkerContext& context, WorkerActions& then) {
  hear(event, context, then);
}

void MixedWorker::on(const MembershipChanged& event, const WorkerContext& context, WorkerActions& then) {
  if (leads(context)) hear(MembershipChanged{grouping_.groups(event.membership)}, context, then);
}

void MixedWorker::on(const DeadlinePassed& event, const WorkerContext& context, WorkerActions& then) {
  hear(event, context, then);
}

std::string MixedWorker::state() const {
  return write_state({{"members", members_},
                      {"inner_computes", inner_computes_},
                      {"late", to_text(late_)},
                      {"inner", inner_->state()}});
}

core::Result<void> MixedWorker::restore(const std::string& text) {
  std::string late;
  std::string inner;
  return read_state(text,
                    {{"members", &members_}, {"inner_computes", &inner_computes_}, {"late", &late}, {"inner", &inner}})
      .and_then([&] { return events_from_text(late); })
      .and_then([&](std::vector<WorkerEvent> events) {
        late_ = std::move(events);
        return inner_->restore(inner);
      })
      .and_then([&]() -> core::Result<void> {
        if (!members_.empty()) return {};  // a rule that asked for Compute knows its group
        return core::fail(core::Errc::corrupt, fmt::format("the state of a group without members: \"{}\"", text));
      });
}

// ---- server rule

void MixedServer::on(const Request& request, const ServerContext& context, ServerActions& then) {
  auto of_group = request;
  of_group.worker = grouping_.group_of(request.worker);
  tell_inner(of_group, context, then);
}

void MixedServer::refused(const Request& request, const ServerContext& context, ServerActions& then) {
  auto of_group = request;
  of_group.worker = grouping_.group_of(request.worker);
  const auto groups = grouping_.groups(context.membership);
  inner_->refused(of_group, {context.self, groups, context.version}, then);
}

void MixedServer::on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) {
  tell_inner(MembershipChanged{grouping_.groups(event.membership)}, context, then);
}

void MixedServer::on(const DeadlinePassed& event, const ServerContext& context, ServerActions& then) {
  tell_inner(event, context, then);
}

template <class Event>
void MixedServer::tell_inner(const Event& event, const ServerContext& context, ServerActions& then) {
  const auto groups = grouping_.groups(context.membership);
  inner_->on(event, {context.self, groups, context.version}, then);
}

// ---- options

namespace {

/// A strategy that groups may follow, and what the schedule search draws of its options.
struct Inner {
  StrategyInfo info;
  std::function<OptionSpace(const RunShape&)> option_space;
};

std::vector<Inner> inner_strategies() {
  const auto with_its_space = [](const StrategyInfo& info) { return Inner{info, info.option_space}; };
  return {with_its_space(downpour()), {easgd(), [](const RunShape&) { return easgd_timing(); }}, with_its_space(ssp())};
}

std::vector<std::string> inner_names() {
  std::vector<std::string> names;
  for (const auto& inner : inner_strategies()) names.push_back(inner.info.name);
  return names;
}

/// The inner strategy's workers are groups.
std::uint32_t group_size(const MixedConfig& options, const RunShape& shape) {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(options.group_size, shape.workers));
}

RunShape groups_of(std::uint32_t size, RunShape shape) {
  shape.workers = (shape.workers + size - 1) / size;
  return shape;
}

const core::Table<MixedConfig>& mixed_table() {
  static const core::Table<MixedConfig> table{
      "strategy",
      {{"group_size", &MixedConfig::group_size, core::between(1, core::kMostCount),
        "workers that average their gradients at every step"},
       {"inner", &MixedConfig::inner, core::one_of(inner_names()),
        "what a group is one worker of; its options stand beside this one"},
       {"ema", &MixedConfig::ema, core::between(0, 1),
        "above 0: the model is a moving average of the centre, and each update keeps this share of it; as train.ema"},
       {"placement", &MixedConfig::placement, core::one_of({"colocated", "dedicated"}),
        "where servers are simulated unless the cluster file says it: on the workers' hosts or on their own"},
       {"overlap", &MixedConfig::overlap, core::one_of({"off", "skip", "wait"}),
        "exchange while computing, as the inner strategy allows it"}}};
  return table;
}

/// The inner strategies' options as options of mixed. An option of several of them (overlap) stands in mixed's own table; the rule
/// of the chosen inner strategy checks it.
void add_mixed_options(core::Schema& schema) {
  schema.add(mixed_table(), "mixed");
  for (const auto& inner : inner_strategies()) {
    core::Schema own;
    inner.info.add_options(own);
    for (auto option : own.options()) {
      option.scope = "mixed";
      if (!schema.find(option.key, "mixed")) schema.add_option(std::move(option));
    }
  }
}

class Mixed final : public Strategy {
 public:
  Mixed(Grouping grouping, std::unique_ptr<Strategy> inner, std::vector<std::string> doubts)
      : grouping_(grouping), inner_(std::move(inner)), doubts_(std::move(doubts)) {}
  Needs needs() const override {
    auto needs = inner_->needs();
    needs.group = needs.subgroups = true;
    needs.in_step = true;
    needs.local_steps = false;  // the group sums gradients
    needs.doubts.insert(needs.doubts.end(), doubts_.begin(), doubts_.end());
    return needs;
  }
  std::unique_ptr<WorkerRule> worker() const override {
    return std::make_unique<MixedWorker>(grouping_, inner_->worker());
  }
  std::unique_ptr<ServerRule> server() const override {
    return std::make_unique<MixedServer>(grouping_, inner_->server());
  }

 private:
  Grouping grouping_;
  std::unique_ptr<Strategy> inner_;
  std::vector<std::string> doubts_;
};

/// `name` is one of inner_names(): the option's rule checked it.
StrategyInfo inner_strategy(const std::string& name) {
  for (auto& inner : inner_strategies())
    if (inner.info.name == name) return inner.info;
  throw std::invalid_argument("no inner strategy is called \"" + name + "\"");
}

/// One group of all workers steps as bsp does, and has nobody to exchange with.
std::vector<std::string> doubts_about(const core::Config& config, const MixedConfig& options, const RunShape& shape) {
  if (shape.workers <= 1 || options.group_size < shape.workers) return {};
  return {config.where("strategy.group_size") + ": strategy.group_size = " + std::to_string(options.group_size) +
          " makes one group of all " + std::to_string(shape.workers) +
          " workers: the run steps as bsp does; set it below their number"};
}

core::Result<std::unique_ptr<Strategy>> make_mixed(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(mixed_table());
  if (options.ema == 1)
    return core::fail(core::Errc::config,
                      config.where("strategy.ema") + ": strategy.ema = 1 never leaves the first parameters; below 1");
  const auto inner = inner_strategy(options.inner);
  core::Schema own;
  inner.add_options(own);
  for (const auto& option : own.options()) {
    const auto& value = config.value(option.key);
    if (option.rule.allows && !option.rule.allows(value))
      return core::fail(core::Errc::config, config.where(option.key) + ": " + option.key + " = " +
                                                core::to_toml(value) + ": must be " + option.rule.text +
                                                " with strategy.inner = \"" + inner.name + "\"");
  }
  const auto size = group_size(options, shape);
  return inner.make(config, groups_of(size, shape))
      .map([&](std::unique_ptr<Strategy> strategy) -> std::unique_ptr<Strategy> {
        return averaged(
            std::make_unique<Mixed>(Grouping{size}, std::move(strategy), doubts_about(config, options, shape)),
            options.ema);
      });
}

OptionSpace mixed_space(const RunShape& shape) {
  OptionSpace::Choice inner;
  for (const auto& [info, option_space] : inner_strategies()) {
    auto options = option_space(shape);
    options.set.insert(options.set.begin(), {"inner", info.name});
    inner.push_back(std::move(options));
  }
  return {.choices = {range("group_size", 1, 3), std::move(inner), values("ema", {"0", "0.9"})}};
}

/// The inner strategy's, with groups as its workers; and what mixed adds.
Properties mixed_properties(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(mixed_table());
  const auto size = group_size(options, shape);
  Properties all{EqualReplicas{.group_size = size}};
  for (auto& property : inner_strategy(options.inner).properties(config, groups_of(size, shape))) {
    if (auto* clocks = std::get_if<BoundedClocks>(&property)) clocks->group_size = size;
    all.push_back(std::move(property));
  }
  if (options.ema > 0) all.emplace_back(MovingAverage{.decay = options.ema});
  return all;
}

/// The inner strategy's, with groups as its workers.
RateShare mixed_share(const core::Config& config, const RunShape& shape) {
  const auto options = config.get(mixed_table());
  const auto inner = inner_strategy(options.inner);
  return inner.rate_share ? inner.rate_share(config, groups_of(group_size(options, shape), shape)) : RateShare{};
}

std::vector<std::string> mixed_replayable_options() {
  std::vector<std::string> names{"ema", "placement"};
  for (const auto& inner : inner_strategies())
    names.insert(names.end(), inner.info.replayable_options.begin(), inner.info.replayable_options.end());
  return names;
}

}  // namespace

StrategyInfo mixed() {
  return {.name = "mixed",
          .summary = "groups average gradients at every step and act as one worker of an asynchronous strategy",
          .add_options = add_mixed_options,
          .make = make_mixed,
          .option_space = mixed_space,
          .properties = mixed_properties,
          .rate_share = mixed_share,
          .replayable_options = mixed_replayable_options()};
}

}  // namespace troupe::strategies
