/// Section [train]: the local optimizer and its learning-rate schedule. core::Kernels::optimize does the arithmetic of a step
/// (formulas at core::OptimizerStep); this file sets its numbers. Thread rule: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.hpp"
#include "core/kernels.hpp"

namespace troupe::nn {

struct TrainConfig {
  std::string optimizer = "momentum";
  double lr = 0.01;  // as a key: "auto", which experiment::schema() turns into a number
  double momentum = 0.9;
  double weight_decay = 0;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  std::string rmsprop_epsilon = "outside";  // the root, as PyTorch; "inside": as TensorFlow
  double label_smoothing = 0;
  double ema = 0;  // above 0: the model is a moving average of the parameters
  double clip_value = 0;
  double clip_norm = 0;
  std::int64_t accumulate = 1;  // micro-batches per step (experiment/state/accumulation.hpp)
  bool recompute = false;       // nn::CompileOptions::recompute
  std::int64_t max_bad_updates = 10;
  std::string lr_policy = "constant";
  double lr_step = 10;  // epochs
  double lr_gamma = 0.1;
  double lr_power = 1;
  std::int64_t lr_patience = 5;  // evaluations
  double warmup_epochs = 0;
  double warmup_from = 0;  // divisor of the first learning rate; 0: the number of workers
  bool scale_lr = false;
};
[[nodiscard]] const core::Table<TrainConfig>& train_table();

/// The learning rate at `epoch_position` (epochs since the run began, fractional; a function of the lease index, so it does not
/// depend on the speed of workers). With η = lr, times `workers` if scale_lr, it is η · policy · warm-up:
///   constant    1
///   plateau     1; the rest of it is a factor of each lease (data::Lease::lr_factor), which evaluations decide
///   step        lr_gamma ^ floor(epoch_position / lr_step)
///   polynomial  (1 − epoch_position / total_epochs) ^ lr_power, 0 from the end on
///   cosine      ½ (1 + cos(π · epoch_position / total_epochs)), 0 from the end on
///   warm-up     grows linearly from 1/d at epoch 0 to 1 at warmup_epochs, d = warmup_from, or `workers` if that is 0
/// REQUIRES: total_epochs > 0 for polynomial and cosine, workers ≥ 1.
[[nodiscard]] double learning_rate(const TrainConfig& config, double epoch_position, double total_epochs,
                                   int workers) noexcept;

/// Whether the policy's rate depends on the run's length: a longer run changes the rate at every position.
[[nodiscard]] bool depends_on_length(const TrainConfig& config) noexcept;

/// Throws std::invalid_argument for a name that the table of optimizers does not have: the options' rule refuses it before.
[[nodiscard]] core::OptimizerKind optimizer_kind(const TrainConfig& config);

/// The numbers of the optimizer step at that position, with the rate times `lr_factor`. momentum is 0 for kinds without it. The caller
/// sets the step's number t.
[[nodiscard]] core::OptimizerStep optimizer_step(const TrainConfig& config, double epoch_position, double total_epochs,
                                                 int workers, double lr_factor = 1);

}  // namespace troupe::nn
