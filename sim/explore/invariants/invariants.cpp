#include "sim/explore/invariants/invariants.hpp"

#include "sim/explore/schedule/space.hpp"

namespace troupe::explore {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

}  // namespace

core::Result<Invariants> invariants_for(const Schedule& schedule, const core::Config& config, const Needs& needs) {
  const auto strategy = find_searched(schedule.strategy);
  if (!strategy) return tl::unexpected(strategy.error());
  const auto make_checker = Overloaded{
      [](const auto& declared) { return checker(declared); },
      [&](const MovingAverage& declared) { return checker(declared, needs.model_slot); },
  };
  Invariants all;
  all.push_back(general());
  for (const auto& property : (*strategy)->properties(config, schedule.shape()))
    all.push_back(std::visit(make_checker, property));
  return all;
}

}  // namespace troupe::explore
