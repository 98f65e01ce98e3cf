#include "actors/coordinator.hpp"

#include "actors/coordinator_body.hpp"
#include "actors/supervision.hpp"

namespace troupe::actors {

CoordinatorState::CoordinatorState() = default;
CoordinatorState::~CoordinatorState() = default;

CoordinatorActor::behavior_type coordinator(CoordinatorActor::stateful_pointer<CoordinatorState> self,
                                            CoordinatorSetup setup) {
  self->state.body = std::make_unique<CoordinatorBody>(self, std::move(setup));
  self->set_down_handler([self](const caf::down_msg& message) { self->state.body->down(message); });
  // An exception of the coordinator's own ends the run like anybody else's.
  self->set_exception_handler([self](std::exception_ptr& thrown) -> caf::error {
    const auto failure = failure_of("coordinator", thrown);
    self->state.body->trouble({failure.code, failure.message});
    return caf::exit_reason::unhandled_exception;
  });
  return {
      [self](const Company& company) { self->state.body->begin(company); },
      [self](const LeaseRequest& request) { self->state.body->asked(request); },
      [self](const WorkerProgress& progress) { self->state.body->progressed(progress); },
      [self](const Trouble& trouble) { self->state.body->trouble(trouble); },
      [self](const SiteLost& lost) { self->state.body->site_lost(lost); },
      [self](const JournalFull&) { self->state.body->journal_full(); },
      [self](const Interrupt&) { self->state.body->interrupt(); },
      [self](const TransferNews& news) { self->state.body->moved(news); },
      [self](const StillEvaluating&) { self->state.body->still_evaluating(); },
      [self](const StillWriting&) { self->state.body->still_writing(); },
      [self](const Arrived& news) { self->state.body->arrived(news.worker); },
      [self](const Tick&) { self->state.body->tick(); },
      [self](const AwaitEnd&) { self->state.body->await_end(); },
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
