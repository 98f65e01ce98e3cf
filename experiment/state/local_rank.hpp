/// Which of a host's GPUs a worker takes (nn::CompileOptions::local_rank). Pure function.
#pragma once

#include "experiment/exchange_plan.hpp"
#include "experiment/settings.hpp"

namespace troupe::experiment {

/// The number of `worker` among the workers of its host that name the same device. A plan without sites has all on one host.
[[nodiscard]] int local_rank(const Settings& settings, const ExchangePlan& exchange, std::uint32_t worker);

}  // namespace troupe::experiment
