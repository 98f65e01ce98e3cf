#include "actors/coordinator/coordinator.hpp"

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/protocol/supervision.hpp"
#include "core/text/shell_word.hpp"

namespace troupe::actors {

namespace {

/// For messages: "go on with `troupe train --resume runs/…`".
std::string how_to_go_on(const CoordinatorSetup& setup) {
  const auto& launcher = setup.launcher;
  const bool program = setup.graph->is_program() && launcher.empty();
  return fmt::format("go on with `{}troupe {} --resume {}{}`", launcher.empty() ? "" : launcher + " … ",
                     program ? "launch" : "train", core::shell_word(setup.started.directory), setup.resume_options);
}

}  // namespace

coordination::CoordinatorOptions options_of(const CoordinatorSetup& setup) {
  const auto& settings = *setup.settings;
  return {.strategy = settings.strategy,
          .needs = setup.needs,
          .workers = setup.started.workers,
          .epochs = setup.started.epochs,
          .max_epochs = static_cast<std::uint32_t>(settings.run.max_epochs),
          .checkpoints = settings.checkpoint,
          .max_s = settings.run.max_seconds,
          .evaluations = settings.evaluation,
          .evaluates_beside = settings.run.evaluation == "beside",
          .watch = experiment::watch_options(settings.run, settings.train),
          .watched = setup.before.watched,
          .keeps_journal = settings.journal.keep,
          .resumed = setup.resumed,
          .ends_with_member = !setup.launcher.empty(),
          .steps_before = setup.before.steps,
          .trained_before_s = setup.before.train_s,
          .first_steps = setup.first_steps,
          .names = setup.names,
          .how_to_go_on = how_to_go_on(setup),
          .how_to_start_again = "no checkpoint was saved: start the run again"};
}

CoordinatorState::CoordinatorState() = default;
CoordinatorState::~CoordinatorState() = default;

CoordinatorActor::behavior_type coordinator(CoordinatorActor::stateful_pointer<CoordinatorState> self,
                                            CoordinatorSetup setup) {
  self->state.body = std::make_unique<CoordinatorBody>(self, std::move(setup));
  self->set_down_handler([self](const caf::down_msg& message) { self->state.body->down(message); });
  self->set_default_handler(caf::drop);  // else CAF prints what another process makes up
  // An exception of the coordinator ends the run like an exception of any other member.
  self->set_exception_handler([self](std::exception_ptr& thrown) -> caf::error {
    const auto failure = failure_of("coordinator", thrown);
    self->state.body->run_error({failure.code, failure.message});
    return caf::exit_reason::unhandled_exception;
  });
  return {
      [self](const ActorDirectory& actors) {
        if (self->state.body->accepts_from_here()) self->state.body->begin(actors);
      },
      [self](const LeaseRequest& request) {
        if (self->state.body->accepts(request)) self->state.body->asked(request);
      },
      [self](const WorkerProgress& progress) {
        if (self->state.body->accepts(progress)) self->state.body->progressed(progress);
      },
      [self](const RunError& run_error) {
        if (!self->state.body->accepts(run_error)) return;
        self->state.body->run_error({run_error.code, one_line(run_error.text), run_error.site});
      },
      [self](const SiteLost& lost) {
        if (self->state.body->accepts(lost)) self->state.body->site_lost({lost.site, lost.lost, one_line(lost.why)});
      },
      [self](const JournalFull&) {
        if (self->state.body->accepts_from_here()) self->state.body->journal_full();
      },
      [self](const Interrupt&) {
        if (self->state.body->accepts_from_here()) self->state.body->interrupt();
      },
      [self](const SaveRequest&) {
        if (self->state.body->accepts_from_here()) self->state.body->save();
      },
      [self](const TransferNews& news) {
        if (self->state.body->accepts(news)) self->state.body->transfer_seen(news);
      },
      [self](const StillEvaluating&) {
        if (self->state.body->accepts_from_here()) self->state.body->still_evaluating();
      },
      [self](const StillWriting&) {
        if (self->state.body->accepts_from_here()) self->state.body->still_writing();
      },
      [self](const Arrived& news) {
        if (self->state.body->accepts_from_here()) self->state.body->arrived(news.worker);
      },
      [self](const Tick&) {
        if (self->state.body->accepts_from_here()) self->state.body->tick();
      },
      [self](const AwaitEnd&) {
        if (self->state.body->accepts_from_here()) self->state.body->await_end();
      },
  };
}

RunEnd await_end(caf::actor_system& system, const CoordinatorActor& coordinator) {
  RunEnd end;
  caf::scoped_actor self(system);
  self->monitor(coordinator);
  self->send(coordinator, AwaitEnd{});
  self->receive([&](const RunEnd& reached) { end = reached; },
                [&](const caf::down_msg& down) {
                  end.failed = true;
                  end.error = {core::Errc::internal, "coordinator: " + system.render(down.reason)};
                });
  return end;
}

}  // namespace troupe::actors
