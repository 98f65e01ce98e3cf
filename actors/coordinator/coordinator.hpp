/// The coordinator actor, one per run: membership, batch leases, epochs, evaluation, checkpoints and the end. It knows no
/// strategy's rule. Training pauses at a lease boundary for whatever needs the model as a whole: it stops granting, waits
/// until all that was granted is done, takes a snapshot, and goes on.
#pragma once

#include <memory>

#include "actors/protocol/handles.hpp"
#include "actors/coordinator/member_rules.hpp"
#include "actors/protocol/vocabulary.hpp"
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
  std::vector<strategies::Slot> state_slots;    // of a worker, that outlive a step
  std::shared_ptr<data::LeaseBook> book;        // fresh or restored; the coordinator's from now on
  RunStarted started;                           // what the recorder shows first
  RunTotals before;                             // of earlier sessions of this run
  std::vector<strategies::Step> first_steps{};  // by rank: where the founding members' hosts begin; none: at 0
  bool resumed = false;
  std::string launcher{};  // of an MPI job, "mpirun": whoever is lost takes the others along; none: there is none
  core::Allocator* memory = nullptr;   // of snapshots; outlives the actor
  const core::Clock* clock = nullptr;  // outlives the actor
  StewardActor steward{};              // none: nobody comes in place of who is lost
  std::vector<std::string> names{};    // of workers, for messages; none: "worker 1"
  MemberRules rules{};                 // for members in other processes
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

/// Blocks the thread until the run is over: it has no deadline, everything within it has. A coordinator that ends without a word
/// ends it with Errc::internal.
[[nodiscard]] RunEnd await_end(caf::actor_system& system, const CoordinatorActor& coordinator);

}  // namespace troupe::actors
