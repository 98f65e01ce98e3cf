/// The worker actor: spawned detached, it owns a Replica that it compiles and runs on its own thread, and is the port of a
/// WorkerHost. It never waits on disk, and does no arithmetic: replica and kernels do.
#pragma once

#include <memory>
#include <optional>

#include "actors/protocol/handles.hpp"
#include "core/clock.hpp"
#include "nn/backend.hpp"
#include "nn/optimizer.hpp"
#include "strategies/strategy.hpp"

namespace troupe::actors {

/// What a worker is spawned with. Shared pieces are read only.
struct WorkerSetup {
  strategies::WorkerId self = 0;
  std::uint32_t workers = 1;
  std::uint64_t seed = 1;
  std::shared_ptr<const nn::Graph> graph;
  nn::Backend* backend = nullptr;  // outlives the actor
  nn::CompileOptions compile;
  std::shared_ptr<core::Allocator> arenas{};  // that compile names, where nobody else keeps it
  std::optional<nn::Plan> plan;               // of the run that is resumed; else the backend chooses
  std::shared_ptr<const strategies::Strategy> strategy;
  nn::TrainConfig train;
  double total_epochs = 1;
  std::uint32_t servers = 0;
  bool journal = true;                 // keep one
  double slowdown = 1;                 // times as long as it takes to compute a step: it sleeps for the rest
  core::Duration synthetic_step{0};    // a step takes at least so long, before slowdown
  const core::Clock* clock = nullptr;  // outlives the actor
  core::Duration exchange_deadline = std::chrono::seconds(600);
};

class WorkerBody;
struct WorkerState {
  std::unique_ptr<WorkerBody> body;
  static inline const char* name = "worker";
  WorkerState();
  ~WorkerState();
};

[[nodiscard]] WorkerActor::behavior_type worker(WorkerActor::stateful_pointer<WorkerState> self, WorkerSetup setup);

}  // namespace troupe::actors
