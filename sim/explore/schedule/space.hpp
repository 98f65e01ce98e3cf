/// The options with which a strategy is explored: a small space per strategy; each option has the values worth distinguishing. A strategy
/// without a space is explored with its defaults.
///
///   bsp         combine gradients | updates | weights, average_momentum; backup 1 … N − 1
///   easgd       tau 1 … 3; overlap off | skip | wait; alpha, or alpha_worker and alpha_server apart, or beta, or a schedule
///   eamsgd      the same
///   sync_easgd  tau 1 … 3; beta or alpha
///   downpour    n_push, n_fetch 1 … 3; server_optimizer none | sgd | momentum | adagrad | adam; staleness_aware; overlap off | skip
///   ssp         s 0 … 3; steps_per_clock 1 … 3; overlap off | wait
///   local_sgd   tau; fragments 1 … 3; delay; quorum 0 … N; outer sgd | nesterov
///   diloco      the same, with its own outer optimizer
///   mixed       group_size 1 … 3; inner downpour | easgd | ssp with their options; ema 0 | 0.9
///   gossip      p 0.25 | 0.5 | 1
///   pairs       tau 1 … 3
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

/// "strategy.tau=2", …: arguments of --set on the command line, valid for this run shape. A pure function of its arguments.
[[nodiscard]] std::vector<std::string> draw_options(std::string_view strategy, const RunShape& shape,
                                                    core::Random& random);

/// The optimizer that the strategy's definition requires for local steps; else any.
[[nodiscard]] core::OptimizerStep draw_optimizer(std::string_view strategy, core::Random& random);

}  // namespace troupe::explore
