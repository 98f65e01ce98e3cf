/// What the members of a run begin with: fresh parameters, or what a checkpoint kept of a former session. Canonical vectors,
/// shared and read only.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "experiment/blueprint.hpp"
#include "experiment/state/checkpoint.hpp"
#include "experiment/reports.hpp"

namespace troupe::experiment {

using CanonicalVector = std::shared_ptr<const std::vector<float>>;

/// A member in the middle of a run, as a journal segment finds it.
struct WorkerStart {
  struct Letter {
    strategies::WorkerId from = 0;
    double weight = 0;
    CanonicalVector vector;
  };
  std::string state;  // of its host
  std::map<strategies::Slot, CanonicalVector> slots;
  std::vector<float> statistics;  // its own, canonical
  std::vector<Letter> letters;    // unread
};
struct ServerStart {
  std::string state;  // of its half
  strategies::Version version = 0;
};

struct StartState {
  CanonicalVector parameters;                                  // of the workers and the centre
  CanonicalVector statistics;                                  // null: the backend's own
  std::vector<std::vector<CanonicalVector>> optimizer_states;  // [worker][k]; none: zero
  std::vector<strategies::Step> first_steps;                   // [worker]
  std::vector<std::uint64_t> optimizer_steps;                  // [worker]: that made its optimizer_states; none: 0
  std::vector<CanonicalVector> server_states;                  // [k]; none: zero, or parameters for Needs::model_slot
  strategies::Version center_version = 0;  // updates since the servers' state began: what Adam's bias correction needs
  std::vector<Note> notes;                 // state that was left behind
  std::vector<strategies::Version> versions{};  // by shard, of a centre that has gone on; none: center_version
  /// Not empty: the members go on in the middle of the run, and of what stands above only parameters, steps and server states hold.
  std::map<strategies::WorkerId, WorkerStart> workers{};  // the members
  std::vector<ServerStart> servers{};
  strategies::Membership membership{};
};

/// Slot of a worker's k-th optimizer state vector.
[[nodiscard]] constexpr strategies::Slot optimizer_state(int k) noexcept {
  return {strategies::SlotKind::velocity, static_cast<std::uint8_t>(k)};
}

/// `checkpoint` null: a new run. Optimizer state goes on where the strategy keeps it and the rule that made it is still the same.
[[nodiscard]] StartState start_state(const Blueprint& plan, const Checkpoint* checkpoint);

/// A worker's slots that outlive a step: parameters, optimizer state and the strategy's own.
[[nodiscard]] std::vector<strategies::Slot> state_slots(const Blueprint& plan);

/// What a worker and a server are in a start state's `members`, and who is one, and back. Errc::corrupt.
void put(Checkpoint& checkpoint, std::uint32_t worker, const WorkerStart& start);
void put(Checkpoint& checkpoint, std::uint32_t server, const ServerStart& start);
void put(Checkpoint& checkpoint, const strategies::Membership& membership);
/// The start state of a segment that began in the middle of a run. REQUIRES checkpoint.members not empty.
[[nodiscard]] core::Result<StartState> members_state(const Blueprint& plan, const Checkpoint& checkpoint);

}  // namespace troupe::experiment
