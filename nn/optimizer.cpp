#include "nn/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::nn {

namespace {

using core::OptimizerInfo;

/// " (rmsprop, adam)": the optimizers that an option is for.
std::string those_with(bool OptimizerInfo::*property) {
  return fmt::format(" ({})", fmt::join(core::optimizer_names(property), ", "));
}

/// Where the first state vector is a mean of gradients, momentum has another name.
std::string momentum_of_means() {
  std::vector<std::string_view> names;
  for (const auto& row : core::kOptimizers)
    if (row.momentum && !row.velocity) names.push_back(row.name);
  return fmt::format("; beta1 of {}", fmt::join(names, ", "));
}

}  // namespace

const core::Table<TrainConfig>& train_table() {
  using core::between;
  using core::kLeastFloat;
  using core::kMostFloat;
  constexpr double kMostSmoothing = 0.999;
  constexpr double kMostAverage = 0.9999999;
  static const core::Table<TrainConfig> table{
      "train",
      {{"optimizer", &TrainConfig::optimizer, core::one_of(core::optimizer_names()), "rule of the local step"},
       {"lr", &TrainConfig::lr, core::or_auto(between(0, kMostFloat)),
        "learning rate; auto: the optimizer's usual rate, times what model, batch and strategy need"},
       {"momentum", &TrainConfig::momentum, between(0, 0.999999),
        "share of the velocity kept per step" + those_with(&OptimizerInfo::velocity) + momentum_of_means()},
       {"weight_decay", &TrainConfig::weight_decay, between(0, kMostFloat),
        "added to the gradient, times the parameters"},
       {"beta2", &TrainConfig::beta2, between(0, 0.999999),
        "share of the mean of squared gradients kept per step" + those_with(&OptimizerInfo::decay)},
       {"epsilon", &TrainConfig::epsilon, between(kLeastFloat, kMostFloat),
        "added to the root of squared gradients" + those_with(&OptimizerInfo::epsilon)},
       {"rmsprop_epsilon", &TrainConfig::rmsprop_epsilon, core::one_of({"outside", "inside"}),
        "rmsprop: epsilon is added to the root, as PyTorch does, or to the mean of squares inside it, as TensorFlow "
        "does; also where servers step with it"},
       {"label_smoothing", &TrainConfig::label_smoothing, between(0, kMostSmoothing),
        "share of the label that all classes have equally (cross-entropy); evaluation uses the plain label"},
       {"ema", &TrainConfig::ema, between(0, kMostAverage),
        "above 0: the model that is evaluated and saved is a moving average of the parameters, and each update keeps "
        "this share of it, for example 0.9999"},
       {"clip_value", &TrainConfig::clip_value, between(0, kMostFloat),
        "limit of each element of a gradient before it is used; 0: none"},
       {"clip_norm", &TrainConfig::clip_norm, between(0, kMostFloat),
        "limit of a gradient's Euclidean norm before it is used; 0: none"},
       {"accumulate", &TrainConfig::accumulate, between(1, core::kMostCount),
        "number of equal parts in which a step's batch is computed, one after the other: the same step in less memory"},
       {"recompute", &TrainConfig::recompute, core::anything(),
        "backward computes cheap activations again (batch norm, pooling, concat) instead of keeping them: the same "
        "step in less memory"},
       {"max_bad_updates", &TrainConfig::max_bad_updates, core::between(1, 1'000'000'000),
        "gradients or pushes of one worker in a row with numbers that are not finite, or too large to be of use: none "
        "is used, and so many end the run"},
       {"lr_policy", &TrainConfig::lr_policy, core::one_of({"constant", "step", "polynomial", "cosine", "plateau"}),
        "how the learning rate falls; cosine: as half a cosine, to 0; plateau: when the validation score has not "
        "improved for lr_patience evaluations"},
       {"lr_step", &TrainConfig::lr_step, between(kLeastFloat, kMostFloat), "step: epochs between falls"},
       {"lr_gamma", &TrainConfig::lr_gamma, between(kLeastFloat, kMostFloat), "step, plateau: factor of a fall"},
       {"lr_power", &TrainConfig::lr_power, between(kLeastFloat, kMostFloat),
        "polynomial: exponent; 1 falls linearly to 0"},
       {"lr_patience", &TrainConfig::lr_patience, between(1, core::kMostCount),
        "plateau: evaluations in a row without a better validation score (run.monitor) before a fall"},
       {"warmup_epochs", &TrainConfig::warmup_epochs, between(0, kMostFloat),
        "epochs in which the learning rate grows linearly to its value"},
       {"warmup_from", &TrainConfig::warmup_from, between(0, kMostFloat),
        "the warm-up starts at lr / this; 0: the number of workers"},
       {"scale_lr", &TrainConfig::scale_lr, core::anything(), "multiply lr by the number of workers"}},
      TrainConfig{.lr = core::kAutomatic}};
  return table;
}

double learning_rate(const TrainConfig& config, double epoch_position, double total_epochs, int workers) noexcept {
  double rate = config.lr * (config.scale_lr ? workers : 1);
  if (config.lr_policy == "step") {
    rate *= std::pow(config.lr_gamma, std::floor(epoch_position / config.lr_step));
  } else if (config.lr_policy == "polynomial") {
    rate *= std::pow(std::clamp(1.0 - epoch_position / total_epochs, 0.0, 1.0), config.lr_power);
  } else if (config.lr_policy == "cosine") {
    rate *= (1.0 + std::cos(std::numbers::pi * std::clamp(epoch_position / total_epochs, 0.0, 1.0))) / 2;
  }
  if (epoch_position < config.warmup_epochs) {
    const double start = 1.0 / (config.warmup_from > 0 ? config.warmup_from : workers);
    rate *= start + (1.0 - start) * epoch_position / config.warmup_epochs;
  }
  return rate;
}

bool depends_on_length(const TrainConfig& config) noexcept {
  return config.lr_policy == "polynomial" || config.lr_policy == "cosine";
}

core::OptimizerKind optimizer_kind(const TrainConfig& config) {
  return core::with_epsilon(core::optimizer_info(config.optimizer), config.rmsprop_epsilon == "inside");
}

core::OptimizerStep optimizer_step(const TrainConfig& config, double epoch_position, double total_epochs, int workers,
                                   double lr_factor) {
  const auto& optimizer = core::optimizer_info(optimizer_kind(config));
  return {.kind = optimizer.kind,
          .lr = static_cast<float>(learning_rate(config, epoch_position, total_epochs, workers) * lr_factor),
          .momentum = optimizer.momentum ? static_cast<float>(config.momentum) : 0.0f,
          .weight_decay = static_cast<float>(config.weight_decay),
          .decay = static_cast<float>(config.beta2),
          .epsilon = static_cast<float>(config.epsilon),
          .clip_value = static_cast<float>(config.clip_value),
          .clip_norm = static_cast<float>(config.clip_norm)};
}

}  // namespace troupe::nn
