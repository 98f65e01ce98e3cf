/// Options whose value follows from the others: what `train.lr = "auto"` means, and the optimizer of a strategy that has only one.
#pragma once

#include <vector>

#include "core/config/config.hpp"
#include "experiment/reports.hpp"

namespace troupe::experiment {

/// train.optimizer: a strategy with one optimizer of local steps (StrategyInfo::local_optimizer) takes it instead of another that steps
/// with or without a velocity too; for others its own check refuses the run.
/// train.lr = "auto": the optimizer's usual rate (core::OptimizerInfo::lr), times the model's share if the optimizer's steps are along the
/// gradient (nn::rate_share) and the batch's if it is below 16, times the strategy's share (strategies::rate_share), to three digits.
void add_derivations(core::Schema& schema);

/// What train.lr = "auto" means with the other options of `config`, whatever its train.lr.
[[nodiscard]] double automatic_rate(const core::Config& config);

/// What came of it, one line per option: "train.lr = 0.015 (auto: …)".
[[nodiscard]] std::vector<Note> notes_on_derived(const core::Config& config);

}  // namespace troupe::experiment
