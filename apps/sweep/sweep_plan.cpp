#include "apps/sweep/sweep_plan.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/grid/results.hpp"
#include "apps/grid/toml_text.hpp"
#include "core/text/nearest.hpp"
#include "nn/hash.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::apps {
namespace {

using core::Config;
using core::Result;
using grid::Axis;
using sweep::Kind;
using sweep::Parameter;

constexpr std::string_view kEpochsKey = "run.epochs";
constexpr std::string_view kLimitKey = "run.max_epochs";

tl::unexpected<core::Error> refuse_at(const std::string& where, std::string_view message) {
  return core::fail(core::Errc::config, fmt::format("{}: {}", where, message));
}

const grid::Only* block_of(const grid::GridFile& file, const std::string& strategy) {
  const auto block = std::ranges::find(file.only, strategy, &grid::Only::strategy);
  return block == file.only.end() ? nullptr : &*block;
}

bool has_key(const std::vector<Axis>& axes, const std::string& key) {
  return std::ranges::any_of(axes, [&](const Axis& axis) { return axis.key == key; });
}

class Planner {
 public:
  Planner(grid::GridFile file, const std::vector<std::string>& overrides, const grid::Check& check) {
    plan_.file = std::move(file);
    plan_.overrides = overrides;
    plan_.check = check;
  }

  Result<SweepPlan> make() {
    auto base = Config::load(experiment::schema(), plan_.file.bases.front(), plan_.overrides);
    if (!base) return tl::unexpected(std::move(base.error()));
    const auto steps = {&Planner::read_strategies, &Planner::read_parameters, &Planner::read_score,
                        &Planner::read_rungs};
    for (const auto step : steps)
      if (auto read = (this->*step)(*base); !read) return tl::unexpected(std::move(read.error()));
    const auto& table = *plan_.file.sweep;
    plan_.options.method = table.method == "random" ? sweep::Method::random : sweep::Method::tpe;
    plan_.options.trials = static_cast<std::size_t>(table.runs);
    plan_.options.epochs = table.epochs;
    plan_.options.seed = static_cast<std::uint64_t>(table.seed);
    if (table.start > 0) plan_.options.tpe.start = static_cast<std::size_t>(table.start);
    constexpr double kHour_s = 3600;
    plan_.most_s = table.hours * kHour_s;
    plan_.directory = (std::filesystem::path(base->get(experiment::run_table()).dir) / plan_.file.name).string();
    if (auto valid = check_ends(); !valid) return tl::unexpected(std::move(valid.error()));
    return std::move(plan_);
  }

 private:
  Result<void> read_strategies(const Config& base) {
    const auto axis = std::ranges::find(plan_.file.axes, grid::kStrategyKey, &Axis::key);
    if (axis == plan_.file.axes.end()) {
      strategies_ = {base.get(strategies::strategy_table()).name};
      return {};
    }
    if (axis->range) return refuse_at(axis->where, "strategy.name has a list of names, no range");
    for (const auto& value : axis->values) strategies_.push_back(grid::plain_text(value));
    if (axis->values.size() == 1) {
      plan_.fixed.push_back({{axis->key, axis->values.front(), axis->where}});
    } else {
      parameters_.push_back({.key = axis->key, .kind = Kind::choice, .choices = axis->values, .where = axis->where});
    }
    return {};
  }

  Result<void> read_parameters(const Config& /*base*/) {
    for (const auto& axis : plan_.file.axes) {
      if (axis.key == grid::kStrategyKey) continue;
      std::vector<std::size_t> when;
      for (std::size_t s = 0; s < strategies_.size(); ++s) {
        const auto* block = block_of(plan_.file, strategies_[s]);
        const bool replaced = block != nullptr && has_key(block->axes, axis.key);
        if (!replaced && experiment::schema().find(axis.key, strategies_[s]) != nullptr) when.push_back(s);
      }
      if (auto added = add(axis, std::move(when)); !added) return added;
    }
    for (std::size_t s = 0; s < strategies_.size(); ++s)
      if (const auto* block = block_of(plan_.file, strategies_[s]))
        for (const auto& axis : block->axes)
          if (auto added = add(axis, {s}); !added) return added;
    for (const auto seed : plan_.file.seeds)
      plan_.fixed.push_back({{std::string(grid::kSeedKey), fmt::format("{}", seed), plan_.file.path}});
    if (parameters_.empty())
      return refuse_at(plan_.file.sweep->where, "nothing varies: [grid] needs a range or a list for at least one key");
    plan_.space = sweep::Space(parameters_);
    return {};
  }

  /// `when`: the strategies whose runs have the key.
  Result<void> add(const Axis& axis, std::vector<std::size_t> when) {
    if (axis.key == kLimitKey)
      return refuse_at(axis.where, "run.max_epochs: the sweep says how far its runs are trained");
    if (axis.key == kEpochsKey && (axis.range || axis.values.size() > 1 || when.size() < strategies_.size()))
      return refuse_at(axis.where, "run.epochs is the length of every run of a sweep: it cannot vary");
    if (when.empty()) return {};
    const auto strategy = when.front();
    if (when.size() == strategies_.size()) when.clear();
    if (!axis.range && axis.values.size() == 1) {
      plan_.fixed.push_back({{axis.key, axis.values.front(), axis.where}, std::move(when)});
      return {};
    }
    Parameter parameter{.key = axis.key, .kind = Kind::choice, .choices = axis.values, .where = axis.where};
    if (!when.empty()) {
      parameter.depends_on = 0;
      parameter.when = std::move(when);
    }
    if (axis.range)
      if (auto read = read_range_of(axis, strategies_[strategy], parameter); !read) return read;
    parameters_.push_back(std::move(parameter));
    return {};
  }

  static Result<void> read_range_of(const Axis& axis, const std::string& strategy, Parameter& parameter) {
    const auto& value = experiment::schema().find(axis.key, strategy)->default_value;
    const bool whole =
        std::holds_alternative<std::int64_t>(value) || std::holds_alternative<std::vector<std::int64_t>>(value);
    const bool real = std::holds_alternative<double>(value) || std::holds_alternative<std::vector<double>>(value);
    if (!whole && !real) return refuse_at(axis.where, fmt::format("{} is no number: list its values", axis.key));
    if (whole && (axis.range->low != std::floor(axis.range->low) || axis.range->high != std::floor(axis.range->high)))
      return refuse_at(axis.where, fmt::format("{} is a whole number: so are the ends of its range", axis.key));
    constexpr double kMostWhole = 9007199254740992.0;  // 2^53: up to here each of them is a double
    if (whole && !(axis.range->low >= -kMostWhole && axis.range->high <= kMostWhole))
      return refuse_at(axis.where, fmt::format("{}: the ends of a range of whole numbers are at most 2^53", axis.key));
    parameter.kind = whole ? Kind::integer : Kind::real;
    parameter.low = axis.range->low;
    parameter.high = axis.range->high;
    parameter.log = axis.range->log;
    return {};
  }

  Result<void> read_score(const Config& base) {
    const auto& table = *plan_.file.sweep;
    const bool validates = std::get<std::string>(base.value("data.validation")) != "none";
    plan_.metric = !table.metric.empty() ? table.metric : validates ? "validation.accuracy" : "test.accuracy";
    auto known = grid::metric_names();
    if (validates)
      for (const char* key : {"accuracy", "loss", "top5", "best.accuracy", "best.loss"})
        known.push_back(fmt::format("validation.{}", key));
    if (std::ranges::find(known, plan_.metric) == known.end())
      return refuse_at(
          table.where,
          fmt::format("[sweep] metric: no summary has \"{}\"{}{}", plan_.metric,
                      core::nearest_hint(plan_.metric, known, core::Quotes::yes),
                      plan_.metric.starts_with("validation.") && !validates ? "; data.validation is \"none\"" : ""));
    plan_.options.higher_is_better = table.goal.empty() ? grid::higher_is_better(plan_.metric) : table.goal == "max";
    return {};
  }

  Result<void> read_rungs(const Config& base) {
    const auto& table = *plan_.file.sweep;
    auto epochs = base.get(experiment::run_table()).epochs;
    if (base.get(experiment::run_table()).max_epochs > 0)
      return refuse_at(base.where(kLimitKey), "run.max_epochs: the sweep says how far its runs are trained");
    for (const auto& fixed : plan_.fixed)
      if (fixed.choice.key == kEpochsKey) epochs = std::atoll(fixed.choice.value.c_str());
    if (table.epochs > 0 && table.epochs < epochs)
      return refuse_at(table.where, fmt::format("[sweep] epochs = {}, over all runs: one run has {} epochs already",
                                                table.epochs, epochs));
    auto& options = plan_.options;
    options.eta = table.eta;
    options.rungs = {epochs};
    if (table.schedule == "none") return {};
    if (table.rungs.empty()) {
      if (table.least > epochs)
        return refuse_at(table.where, fmt::format("[sweep] least = {}: runs have {} epochs", table.least, epochs));
      options.rungs = sweep::rungs_of(epochs, table.least, table.eta);
      return {};
    }
    options.rungs = table.rungs;
    if (options.rungs.back() > epochs)
      return refuse_at(table.where,
                       fmt::format("[sweep] rungs has {}: runs have {} epochs", options.rungs.back(), epochs));
    if (options.rungs.back() < epochs) options.rungs.push_back(epochs);
    return {};
  }

  /// Both ends of each range and each choice, with the middle of all others, must be valid configurations.
  Result<void> check_ends() {
    auto& identity = plan_.identity;
    std::string ranges =
        fmt::format("{} {} {}\n", fmt::join(plan_.options.rungs, " "), plan_.metric, plan_.options.higher_is_better);
    std::string whole = ranges;
    const auto& space = plan_.space;
    for (std::size_t i = 0; i < space.size(); ++i) {
      const auto& p = space[i];
      const auto range =
          fmt::format("{} {} {} {} {} [{}] {} [{}]\n", p.key, static_cast<int>(p.kind), p.low, p.high, p.log,
                      fmt::join(p.choices, ", "), p.depends_on.has_value(), fmt::join(p.when, " "));
      ranges += range;
      whole += range;
      const auto places = p.kind == Kind::choice ? p.choices.size() : 2;
      for (std::size_t place = 0; place < places; ++place) {
        const double u = p.kind == Kind::choice ? (static_cast<double>(place) + 0.5) / static_cast<double>(places)
                                                : static_cast<double>(place);
        const auto point = space.point([&](std::size_t j) {
          if (j == i) return u;
          if (p.depends_on == j)  // in the middle of the first choice with which it exists
            return (static_cast<double>(p.when.front()) + 0.5) / static_cast<double>(space[j].choices.size());
          return 0.5;
        });
        const auto run = plan_.run(0, point);
        if (!run) return tl::unexpected(run.error());
        whole += run->identity;
        // Of each strategy: a key may be fixed for one of them only.
        if (i == 0 && (place == 0 || p.key == grid::kStrategyKey)) identity.settings.push_back(run->identity);
      }
    }
    const auto hash = [](const std::string& text) { return nn::hash128_hex(std::as_bytes(std::span(text))); };
    identity.fingerprint = hash(ranges);
    identity.whole = hash(whole);
    return {};
  }

  SweepPlan plan_;
  std::vector<std::string> strategies_;
  std::vector<Parameter> parameters_;
};

}  // namespace

const std::vector<std::string>& unnamed_in_sweeps() {
  static const std::vector<std::string> overrides{fmt::format("{}=0", kLimitKey)};
  return overrides;
}

std::vector<std::string> SweepPlan::keys() const {
  std::vector<std::string> all;
  for (const auto& parameter : space.parameters())
    if (std::ranges::find(all, parameter.key) == all.end()) all.push_back(parameter.key);
  return all;
}

std::vector<grid::Choice> SweepPlan::choices(const sweep::Point& point) const {
  std::vector<grid::Choice> all;
  for (const auto& [choice, when] : fixed)
    if (when.empty() || std::ranges::find(when, static_cast<std::size_t>(point[0].value_or(0))) != when.end())
      all.push_back(choice);
  for (std::size_t i = 0; i < space.size(); ++i)
    if (point[i]) all.push_back({space[i].key, space.text(i, *point[i]), space[i].where});
  return all;
}

std::string SweepPlan::name(std::size_t trial, const sweep::Point& point) const {
  const auto varied = keys();
  return fmt::format("{:03}_{}", trial, grid::name_of({0, choices(point)}, varied, file, file.name));
}

Result<grid::GridRun> SweepPlan::run(std::size_t trial, const sweep::Point& point) const {
  return grid::resolve_run(file, overrides, choices(point), name(trial, point), directory, unnamed_in_sweeps(), check);
}

Result<SweepPlan> plan_sweep(grid::GridFile file, const std::vector<std::string>& overrides, const grid::Check& check) {
  if (auto fixed = grid::fix(file, overrides); !fixed) return tl::unexpected(std::move(fixed.error()));
  for (const auto& text : overrides)
    if (grid::key_of(text) == kLimitKey)
      return core::fail(core::Errc::config, "--set: run.max_epochs: the sweep says how far its runs are trained");
  return Planner(std::move(file), overrides, check).make();
}

}  // namespace troupe::apps
