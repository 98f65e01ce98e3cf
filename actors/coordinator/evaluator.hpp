/// The evaluator actor: spawned detached, it owns an evaluation replica on its own thread and runs the splits that are asked for with the
/// parameters that it borrows. Training is paused meanwhile, or goes on beside it. About once a second it reports to the coordinator that it
/// is still evaluating.
#pragma once

#include <memory>
#include <stop_token>

#include "actors/protocol/handles.hpp"
#include "core/clock.hpp"
#include "data/batch_builder.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

/// What an evaluator is spawned with. compile.training is false; compile.batch is the evaluation's.
struct EvaluatorSetup {
  std::shared_ptr<const nn::Graph> graph;
  nn::Backend* backend = nullptr;  // outlives the actor
  nn::CompileOptions compile;
  std::shared_ptr<const data::BatchBuilder> test;
  std::shared_ptr<const data::BatchBuilder> validation;  // null: none
  const core::Clock* clock = nullptr;                    // outlives the actor
  std::stop_token stop{};                                // the run is over: an evaluation ends after its batch
};

struct EvaluatorState {
  EvaluatorSetup setup;
  std::unique_ptr<nn::Replica> replica;  // compiled at the first order
  static inline const char* name = "evaluator";
};

[[nodiscard]] EvaluatorActor::behavior_type evaluator(EvaluatorActor::stateful_pointer<EvaluatorState> self,
                                                      EvaluatorSetup setup);

}  // namespace troupe::actors
