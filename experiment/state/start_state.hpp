/// The initial state of a run's members: fresh parameters, or an earlier session's checkpoint. Canonical vectors, shared and read only.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "experiment/exchange_plan.hpp"
#include "experiment/reports.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::experiment {

/// A member in the middle of a run, at the beginning of a journal segment.
struct WorkerStart {
  struct UnreadMessage {
    strategies::WorkerId from = 0;
    double weight = 0;
    CanonicalVector vector;
  };
  std::string state;  // of its host
  std::map<strategies::Slot, CanonicalVector> slots;
  std::vector<float> statistics;             // its own, canonical
  std::vector<UnreadMessage> peer_messages;  // unread
  std::uint64_t steps = 0;                   // nn::Replica::state_of_steps
  OwnState own_state{};                      // null: its optimizer begins anew, or is none of its own
};
struct ServerStart {
  std::string state;  // of its server rule
  strategies::Version version = 0;
};

struct StartState {
  CanonicalVector parameters;  // of the workers and the centre
  CanonicalVector average{};   // of the workers, in `average_slot`; null: they keep none
  strategies::Slot average_slot{};
  CanonicalVector statistics;                                  // null: the backend's own
  std::vector<std::vector<CanonicalVector>> optimizer_states;  // [worker][k]; none: zero
  std::vector<strategies::Step> first_steps;                   // [worker]
  std::vector<std::uint64_t> optimizer_steps;                  // [worker]: steps that made optimizer_states; none: 0
  std::vector<OwnState> own_states{};                          // [worker]; none or null: it begins anew
  std::vector<CanonicalVector> server_states;                  // [k]; none: zero, or parameters for Needs::model_slot
  strategies::Version center_version = 0;       // updates since the servers' state began: for Adam's bias correction
  std::vector<Note> notes;                      // about state that was not taken over
  std::vector<strategies::Version> versions{};  // by shard, of a centre in mid-run; none: center_version
  /// Not empty: the members continue in mid-run; of the above, only parameters, steps and server states apply.
  std::map<strategies::WorkerId, WorkerStart> workers{};  // the members
  std::vector<ServerStart> servers{};
  strategies::Membership membership{};
};

/// Slot of a worker's k-th optimizer state vector.
[[nodiscard]] constexpr strategies::Slot optimizer_state(int k) noexcept {
  return {strategies::SlotKind::velocity, static_cast<std::uint8_t>(k)};
}

/// `checkpoint` null: a new run. Optimizer state continues if the strategy keeps it and the rule that made it is the same. A replay passes
/// the RunPlan::arithmetic of the recorded session, whose members took over what that version's did.
[[nodiscard]] StartState start_state(const RunSpec& spec, const Checkpoint* checkpoint, int arithmetic = kArithmetic);

/// A worker's slots that outlive a step: parameters, optimizer state and the strategy's own.
[[nodiscard]] std::vector<strategies::Slot> state_slots(const RunSpec& spec);

/// Writes the state of a worker, of a server, or the membership into `members` of a start state.
void put(Checkpoint& checkpoint, std::uint32_t worker, const WorkerStart& start);
void put(Checkpoint& checkpoint, std::uint32_t server, const ServerStart& start);
void put(Checkpoint& checkpoint, const strategies::Membership& membership);
/// The start state of a segment that began in mid-run. REQUIRES checkpoint.members not empty. Errc::corrupt.
[[nodiscard]] core::Result<StartState> members_state(const RunSpec& spec, const Checkpoint& checkpoint);

}  // namespace troupe::experiment
