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
      [self](const Tick&) { self->state.body->tick(); },
      [self](const AwaitEnd&) { return self->state.body->await_end(); },
  };
}

}  // namespace troupe::actors
