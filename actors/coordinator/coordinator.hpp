/// The coordinator actor, one per run: membership, leases, epochs, evaluation, checkpoints and the end. It executes no strategy rule.
/// Training pauses at a lease boundary for every operation on the whole model: the coordinator grants no leases, waits until all granted
/// leases are done, takes a snapshot, and resumes.
#pragma once

#include <memory>
#include <optional>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/member_message_checks.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/requests/deadlines.hpp"
#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "strategies/strategy.hpp"

namespace troupe::actors {

/// What the coordinator is spawned with.
struct CoordinatorSetup {
  std::shared_ptr<const Settings> settings;
  std::shared_ptr<const nn::Graph> graph;
  std::shared_ptr<const nn::Layout> layout;  // of every worker's arena
  std::uint64_t plan_hash = 0;               // XXH3-64 of plan.json's text
  strategies::Needs needs;
  std::vector<strategies::Slot> state_slots;     // of a worker: those that outlive a step
  std::shared_ptr<data::LeaseScheduler> leases;  // fresh or restored; owned by the coordinator from now on
  RunStarted started;                            // what the recorder shows first
  RunTotals before;                              // of earlier sessions of this run
  std::string data{};                            // fingerprint of the data set, for checkpoints
  std::string validation{};                      // the same of the validation split
  std::vector<strategies::Step> first_steps{};   // by rank: first steps of the initial members' hosts; none: 0
  bool resumed = false;
  std::string resume_options{};        // of the command that resumes the run, for messages: " --nodes h1:4242"
  std::string launcher{};              // of an MPI job, "mpirun": the loss of a member ends it; empty: no MPI job
  core::Allocator* memory = nullptr;   // of snapshots; outlives the actor
  const core::Clock* clock = nullptr;  // outlives the actor
  core::Duration step_silence =
      kStepSilence + kMargin;                   // a worker that has batches and reports nothing for so long is lost
  RejoinManagerActor rejoin_manager{};          // none: lost workers are not replaced
  std::vector<std::string> names{};             // of workers, for messages; none: "worker 1"
  std::vector<std::string> nodes{};             // of workers: the names of their nodes; empty: in this process
  std::optional<LedgerReport> ledger_before{};  // the last that an earlier session recorded
  MemberMessageChecks checks{};                 // for members in other processes
};

class CoordinatorBody;
struct CoordinatorState {
  std::unique_ptr<CoordinatorBody> body;
  static inline const char* name = "coordinator";
  CoordinatorState();
  ~CoordinatorState();
};

[[nodiscard]] CoordinatorActor::behavior_type coordinator(CoordinatorActor::stateful_pointer<CoordinatorState> self,
                                                          CoordinatorSetup setup);

/// Blocks the thread until the run is over. It has no deadline; every wait within the run has one. A coordinator that ends without a RunEnd
/// gives Errc::internal.
[[nodiscard]] RunEnd await_end(caf::actor_system& system, const CoordinatorActor& coordinator);

}  // namespace troupe::actors
