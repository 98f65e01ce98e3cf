#include "experiment/automatic.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "experiment/settings.hpp"
#include "nn/optimizer.hpp"
#include "nn/zoo/models.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::experiment {
namespace {

constexpr const char* kOptimizer = "train.optimizer";
constexpr const char* kRate = "train.lr";

/// Steps along the gradient, with a velocity or without.
bool along_the_gradient(const core::OptimizerInfo& optimizer) { return !optimizer.epsilon; }

/// sgd, momentum and nesterov take steps along the gradient at similar rates, so one replaces another. Other optimizers need another rate:
/// there the strategy's own check refuses the run.
std::optional<core::Derived> optimizer_of_strategy(const core::Config& config) {
  const auto* const row = strategies::find(config.get(strategies::strategy_table()).name);
  const auto set = std::get<std::string>(config.value(kOptimizer));
  if (!row || !row->local_optimizer) return std::nullopt;
  const auto& wanted = core::optimizer_info(*row->local_optimizer);
  const auto& present = core::optimizer_info(set);
  if (present.kind == wanted.kind || !along_the_gradient(present) || !along_the_gradient(wanted)) return std::nullopt;
  const auto where = config.where(kOptimizer);
  return core::Derived{std::string(wanted.name),
                       fmt::format("{} takes {} steps, not \"{}\" {}", row->name, wanted.name, set,
                                   where == "default" ? "as by default" : "as set by " + where)};
}

/// Below it steps are so noisy that the rate must fall with the batch: LeNet trains at half the rate with 8, where the full one diverges.
constexpr std::int64_t kSmallBatch = 16;

std::int64_t least_batch(const core::Config& config) {
  const auto batches = config.get(data::data_table()).batch;
  return batches.empty() ? kSmallBatch : *std::ranges::min_element(batches);
}

/// Three digits: the number is read and typed by people.
double rounded(double rate) { return std::strtod(fmt::format("{:.3g}", rate).c_str(), nullptr); }

struct Rate {
  double value = 0;
  std::string why;
};

Rate rate_of(const core::Config& config) {
  const auto train = config.get(nn::train_table());
  const auto model = config.get(nn::model_table());
  const auto cluster = config.get(cluster_table());
  const auto& optimizer = core::optimizer_info(train.optimizer);
  double rate = optimizer.lr;
  auto why = fmt::format("auto: {} for {}", optimizer.lr, optimizer.name);
  if (const double share = nn::rate_share(model); along_the_gradient(optimizer) && share != 1) {
    rate *= share;
    why += fmt::format(", x {:.3g} for model {}", share, model.layers.json.empty() ? model.name : "of your own");
  }
  if (const auto batch = least_batch(config); along_the_gradient(optimizer) && batch < kSmallBatch) {
    rate *= static_cast<double>(batch) / kSmallBatch;
    why += fmt::format(", x {:.3g} for a batch of {}", static_cast<double>(batch) / kSmallBatch, batch);
  }
  const auto share = strategies::rate_share(config, {.workers = static_cast<std::uint32_t>(cluster.workers),
                                                     .servers = static_cast<std::uint32_t>(cluster.servers),
                                                     .optimizer = {.kind = optimizer.kind}});
  if (share.factor != 1) {
    rate *= share.factor;
    why += fmt::format(", x {:.3g} for {}: {}", share.factor, config.get(strategies::strategy_table()).name, share.why);
  }
  return {rounded(rate), std::move(why)};
}

std::optional<core::Derived> derived_rate(const core::Config& config) {
  if (config.value(kRate) != core::Value{core::kAutomatic}) return std::nullopt;
  auto rate = rate_of(config);
  return core::Derived{rate.value, std::move(rate.why)};
}

}  // namespace

double automatic_rate(const core::Config& config) { return rate_of(config).value; }

void add_derivations(core::Schema& schema) {
  schema.derive(kOptimizer, optimizer_of_strategy);
  schema.derive(kRate, derived_rate);
}

std::vector<Note> notes_on_derived(const core::Config& config) {
  std::vector<Note> notes;
  for (const auto& [key, why] : config.reasons())
    notes.push_back({Note::Level::info, fmt::format("{} = {} ({})", key, core::to_toml(config.value(key)), why)});
  return notes;
}

}  // namespace troupe::experiment
