/// Spawns a company in one process and takes it apart: who is created when, on which thread, with which memory. Used by
/// run.cpp; knows nothing of epochs or files.
#pragma once

#include <memory>
#include <optional>

#include "actors/coordinator.hpp"
#include "actors/recorder.hpp"
#include "actors/sites.hpp"
#include "actors/vocabulary.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

/// The actor system's settings: message types, and a scheduler that costs nothing when idle.
class SystemConfig : public caf::actor_system_config {
 public:
  SystemConfig();
};

/// What a company begins with.
struct Beginning {
  std::shared_ptr<const Checkpoint> checkpoint;  // null: a new run
  std::string checkpoint_file;                   // where it was
  std::shared_ptr<const RunDirectory> directory;
  std::shared_ptr<nn::CheckpointStore> checkpoints;
  std::vector<Note> notes;
  std::optional<nn::Plan> plan;  // of the run that is resumed
};

/// A company in one process. One thread. Its actors may end after it: what they were given (plan, backend, memory, clock)
/// outlives the actor system, whose destructor waits for them.
class Assembly {
 public:
  Assembly(caf::actor_system& system, const Blueprint& plan, nn::Backend& backend, core::Allocator& memory,
           const core::Clock& clock);

  /// Spawns everyone, compiles the replicas (each on its worker's thread), and lets the run begin. After an Error whoever was
  /// spawned has been sent home.
  [[nodiscard]] core::Result<CoordinatorActor> begin(const Beginning& beginning, const ConsoleOptions& console);
  /// Ends everyone. `end` is what the recorder writes and shows last; the Error is what kept it from that.
  [[nodiscard]] core::Result<void> finish(const RunEnd& end);

 private:
  [[nodiscard]] core::Result<void> spawn_workers(const Beginning& beginning,
                                                 const std::shared_ptr<const StartState>& start);
  [[nodiscard]] core::Result<void> spawn_servers(const StartState& start);
  void spawn_loaders();
  [[nodiscard]] core::Result<void> open_sites();
  void halt();

  caf::actor_system& system_;
  const Blueprint& plan_;
  nn::Backend& backend_;
  const core::Clock& clock_;
  core::Allocator& memory_;
  std::shared_ptr<const nn::Layout> layout_;
  nn::Plan made_plan_;  // worker 0's
  Company company_;     // the members themselves
  std::unique_ptr<Sites> sites_;
  caf::scoped_actor self_;
};

}  // namespace troupe::actors
