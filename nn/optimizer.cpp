#include "nn/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::nn {

const core::Table<TrainConfig>& train_table() {
  using core::between;
  using core::kLeastFloat;
  using core::kMostFloat;
  static const core::Table<TrainConfig> table{
      "train",
      {{"optimizer", &TrainConfig::optimizer,
        core::one_of({"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam"}), "rule of the local step"},
       {"lr", &TrainConfig::lr, between(0, kMostFloat), "learning rate"},
       {"momentum", &TrainConfig::momentum, between(0, 0.999999),
        "share of the velocity kept per step (momentum, nesterov); adam's beta1"},
       {"weight_decay", &TrainConfig::weight_decay, between(0, kMostFloat),
        "added to the gradient, times the parameters"},
       {"beta2", &TrainConfig::beta2, between(0, 0.999999),
        "share of the mean of squared gradients kept per step (rmsprop, adam)"},
       {"epsilon", &TrainConfig::epsilon, between(kLeastFloat, kMostFloat),
        "added to the root of squared gradients (rmsprop, adagrad, adam)"},
       {"clip_value", &TrainConfig::clip_value, between(0, kMostFloat),
        "limit of each element of a gradient before it is used; 0: none"},
       {"clip_norm", &TrainConfig::clip_norm, between(0, kMostFloat),
        "limit of a gradient's Euclidean norm before it is used; 0: none"},
       {"max_bad_updates", &TrainConfig::max_bad_updates, core::between(1, 1'000'000'000),
        "gradients or pushes of one worker in a row with numbers that are not finite, or too large to be of use: none "
        "is used, and so many end the run"},
       {"lr_policy", &TrainConfig::lr_policy, core::one_of({"constant", "step", "polynomial"}),
        "how the learning rate falls"},
       {"lr_step", &TrainConfig::lr_step, between(kLeastFloat, kMostFloat), "step: epochs between falls"},
       {"lr_gamma", &TrainConfig::lr_gamma, between(kLeastFloat, kMostFloat), "step: factor of a fall"},
       {"lr_power", &TrainConfig::lr_power, between(kLeastFloat, kMostFloat),
        "polynomial: exponent; 1 falls linearly to 0"},
       {"warmup_epochs", &TrainConfig::warmup_epochs, between(0, kMostFloat),
        "epochs in which the learning rate grows linearly to its value"},
       {"warmup_from", &TrainConfig::warmup_from, between(0, kMostFloat),
        "the warm-up starts at lr / this; 0: the number of workers"},
       {"scale_lr", &TrainConfig::scale_lr, core::anything(), "multiply lr by the number of workers"}}};
  return table;
}

double learning_rate(const TrainConfig& config, double epoch_position, double total_epochs, int workers) noexcept {
  double rate = config.lr * (config.scale_lr ? workers : 1);
  if (config.lr_policy == "step") {
    rate *= std::pow(config.lr_gamma, std::floor(epoch_position / config.lr_step));
  } else if (config.lr_policy == "polynomial") {
    rate *= std::pow(std::clamp(1.0 - epoch_position / total_epochs, 0.0, 1.0), config.lr_power);
  }
  if (epoch_position < config.warmup_epochs) {
    const double start = 1.0 / (config.warmup_from > 0 ? config.warmup_from : workers);
    rate *= start + (1.0 - start) * epoch_position / config.warmup_epochs;
  }
  return rate;
}

core::OptimizerKind optimizer_kind(const TrainConfig& config) noexcept {
  using enum core::OptimizerKind;
  for (const auto& [name, kind] :
       {std::pair{"sgd", sgd}, {"nesterov", nesterov}, {"rmsprop", rmsprop}, {"adagrad", adagrad}, {"adam", adam}}) {
    if (config.optimizer == name) return kind;
  }
  return momentum;
}

core::OptimizerStep optimizer_step(const TrainConfig& config, double epoch_position, double total_epochs,
                                   int workers) noexcept {
  const auto kind = optimizer_kind(config);
  using enum core::OptimizerKind;
  const bool has_momentum = kind == momentum || kind == nesterov || kind == adam;
  return {.kind = kind,
          .lr = static_cast<float>(learning_rate(config, epoch_position, total_epochs, workers)),
          .momentum = has_momentum ? static_cast<float>(config.momentum) : 0.0f,
          .weight_decay = static_cast<float>(config.weight_decay),
          .decay = static_cast<float>(config.beta2),
          .epsilon = static_cast<float>(config.epsilon),
          .clip_value = static_cast<float>(config.clip_value),
          .clip_norm = static_cast<float>(config.clip_norm)};
}

}  // namespace troupe::nn
