#include "actors/coordinator/evaluator.hpp"

#include "actors/protocol/supervision.hpp"
#include "experiment/evaluation.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::actors {

namespace {

constexpr core::Duration kReportProgressEvery = std::chrono::seconds(1);

Evaluated failed(const core::Error& error) { return {.error = error.message, .code = error.code}; }

}  // namespace

EvaluatorActor::behavior_type evaluator(EvaluatorActor::stateful_pointer<EvaluatorState> self, EvaluatorSetup setup) {
  self->state.setup = std::move(setup);
  return {
      [self](const EvaluateOrder& order, const BorrowedView& parameters, const BorrowedView& statistics) -> Evaluated {
        auto& state = self->state;
        if (!state.replica) {
          auto compiled = experiment::compile_evaluation(*state.setup.backend, *state.setup.graph, state.setup.compile,
                                                         *state.setup.test);
          if (!compiled) return failed(compiled.error());
          state.replica = std::move(*compiled);
        }
        const auto coordinator = caf::actor_cast<CoordinatorActor>(self->current_sender());
        const auto goes_on = [self, coordinator, told = state.setup.clock->now()]() mutable {
          const auto& setup = self->state.setup;
          const auto now = setup.clock->now();
          if (now - told >= kReportProgressEvery) {
            told = now;
            self->send(coordinator, StillEvaluating{});
          }
          return !setup.stop.stop_requested();
        };
        Evaluated evaluated;
        const auto run = [&](const data::BatchBuilder& split, SplitScore& into) -> core::Result<void> {
          return experiment::evaluate(*state.replica, split, parameters.data, statistics.data, goes_on)
              .map([&](const experiment::Score& score) {
                into = {.loss = score.loss,
                        .top1 = score.top1,
                        .top5 = score.top5,
                        .samples = score.samples,
                        .replaced = score.replaced};
              });
        };
        if (order.validation && state.setup.validation)
          if (auto done = run(*state.setup.validation, evaluated.validation); !done) return failed(done.error());
        if (order.test)
          if (auto done = run(*state.setup.test, evaluated.test); !done) return failed(done.error());
        return evaluated;
      },
      [self](const Halt& halt) {
        core::Result<void> ended;
        if (auto* const process = self->state.replica ? nn::own_process_of(*self->state.replica) : nullptr)
          ended = process->end(halt.in_order);
        self->state.replica.reset();
        self->quit(ended ? caf::error() : program_failure("the evaluator: " + ended.error().message));
      },
  };
}

}  // namespace troupe::actors
