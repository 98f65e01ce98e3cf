/// The worker actor, spawned detached. It owns a Replica, which it compiles and runs on its own thread, and is the port of a WorkerHost.
/// It never waits for disk. The replica and the kernels do all arithmetic.
#pragma once

#include <memory>
#include <optional>

#include "actors/protocol/handles.hpp"
#include "core/affinity/machine.hpp"
#include "core/clock.hpp"
#include "nn/backend.hpp"
#include "nn/optimizer.hpp"
#include "strategies/strategy.hpp"

namespace troupe::actors {

/// The arguments of a worker. Shared objects are read only.
struct WorkerSetup {
  strategies::WorkerId self = 0;
  std::uint32_t workers = 1;
  std::uint64_t seed = 1;
  std::shared_ptr<const nn::Graph> graph;
  nn::Backend* backend = nullptr;  // outlives the actor
  nn::CompileOptions compile;
  core::Allocator* loans = nullptr;           // experiment::WorkerMemory::Options::loans
  std::shared_ptr<core::Allocator> arenas{};  // owner of `loans` where the worker must keep it alive
  std::optional<nn::Plan> plan;               // of the run; none: the backend chooses
  core::Cpus cpus{};                          // for its threads; empty: any
  std::shared_ptr<const strategies::Strategy> strategy;
  nn::TrainConfig train;
  double total_epochs = 1;
  std::uint32_t servers = 0;
  bool journal = true;                 // whether the worker writes journal records
  strategies::Step hash_every = 0;     // run.hash_every
  double slowdown = 1;                 // factor on the time of a step: the worker sleeps for the rest
  core::Duration synthetic_step{0};    // shortest time of a step, before slowdown
  const core::Clock* clock = nullptr;  // outlives the actor
  core::Duration exchange_deadline = std::chrono::seconds(600);
  std::shared_ptr<const nn::BytePreparation> bytes{};  // of its loader's batches; null: they are floats
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
