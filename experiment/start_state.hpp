/// What the members of a run begin with: fresh parameters, or what a checkpoint kept of a former session. Canonical vectors,
/// shared and read only.
#pragma once

#include <memory>
#include <vector>

#include "experiment/blueprint.hpp"
#include "experiment/checkpoint.hpp"
#include "experiment/reports.hpp"

namespace troupe::experiment {

using CanonicalVector = std::shared_ptr<const std::vector<float>>;

struct StartState {
  CanonicalVector parameters;
  CanonicalVector statistics;                                  // null: the backend's own
  std::vector<std::vector<CanonicalVector>> optimizer_states;  // [worker][k]; none: zero
  std::vector<strategies::Step> first_steps;                   // [worker]
  std::vector<CanonicalVector> server_states;                  // [k]; none: zero, or parameters for Needs::model_slot
  strategies::Version center_version = 0;  // updates since the servers' state began: what Adam's bias correction needs
  std::vector<Note> notes;                 // state that was left behind
};

/// Slot of a worker's k-th optimizer state vector.
[[nodiscard]] constexpr strategies::Slot optimizer_state(int k) noexcept {
  return {strategies::SlotKind::velocity, static_cast<std::uint8_t>(k)};
}

/// `checkpoint` null: a new run. Optimizer state goes on where the strategy keeps it and the rule that made it is still the same.
[[nodiscard]] StartState start_state(const Blueprint& plan, const Checkpoint* checkpoint);

}  // namespace troupe::experiment
