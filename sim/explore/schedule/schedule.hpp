/// One run to explore: a strategy with its options, its members, and all faults. A plain value and a pure function of (strategy, seed).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {

struct Schedule {
  std::string strategy;
  std::vector<std::string> options;  // "strategy.tau=2"
  std::uint64_t seed = 1;
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  Step steps = 8;  // per worker; a multiple of epochs
  std::uint32_t epochs = 1;
  int buckets = 0;
  std::uint32_t peer_slots = kPeerSlots;  // per worker, for peer messages
  Carriage carriage = Carriage::in_place;
  Delays delays = Delays::constant;
  core::OptimizerStep optimizer{.lr = 0.05F};
  std::vector<Fault> faults;

  [[nodiscard]] RunShape shape() const;
  [[nodiscard]] VirtualRunOptions run_options() const;
  /// The options, parsed and checked like every configuration. Errc::config when they do not fit these members.
  [[nodiscard]] core::Result<core::Config> config() const;
};

/// 1 to 8 workers, 1 to 5 shards, 1 to 12 steps, and up to a dozen faults that a run of the strategy survives. Errors: find_searched's
/// (space.hpp).
[[nodiscard]] core::Result<Schedule> draw_schedule(const std::string& strategy, std::uint64_t seed);

/// Lines of text: members, options and faults.
[[nodiscard]] std::string to_text(const Schedule& schedule);

}  // namespace troupe::explore
