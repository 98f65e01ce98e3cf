#include "actors/worker/worker.hpp"

#include "actors/protocol/supervision.hpp"
#include "actors/worker/worker_body.hpp"

namespace troupe::actors {

namespace {

/// As report_exceptions(), but a device that fails at another site than 0 ends the worker alone: see WorkerBody::step_failed.
void supervise(WorkerActor::stateful_pointer<WorkerState> self, const std::string& name, const ActorDirectory& actors) {
  self->set_exception_handler(
      [self, name, coordinator = actors.coordinator, site = actors.site](std::exception_ptr& thrown) -> caf::error {
        const auto failure = failure_of(name, thrown);
        if (failure.code == core::Errc::io && site != 0) {
          self->state.body->tell_failure(failure.message);
          return caf::make_error(caf::sec::runtime_error, failure.message);
        }
        self->send(coordinator, RunError{self->state.body->code_of_end(failure.code), failure.message, site});
        return caf::exit_reason::unhandled_exception;
      });
}

}  // namespace

WorkerState::WorkerState() = default;
WorkerState::~WorkerState() = default;

WorkerActor::behavior_type worker(WorkerActor::stateful_pointer<WorkerState> self, WorkerSetup setup) {
  const auto name = "worker " + std::to_string(setup.self);
  self->state.body = std::make_unique<WorkerBody>(self, std::move(setup));
  self->set_default_handler(caf::drop);
  return {
      [self](const Prepare&) -> caf::result<Prepared, ReplicaFacts> {
        auto prepared = self->state.body->prepare();
        if (!prepared)
          return {Prepared{.error = prepared.error().message, .code = prepared.error().code}, ReplicaFacts{}};
        return {*prepared, ReplicaFacts{self->state.body->replica().layout(), self->state.body->replica().plan()}};
      },
      [self](const ReplicaStart& start) -> caf::result<ReplicaLoaded> {
        try {
          if (const auto loaded = self->state.body->load(*start.state); !loaded)
            return caf::make_error(caf::sec::runtime_error, loaded.error().message);
        } catch (const core::KernelsFailed& failed) {
          return caf::make_error(caf::sec::runtime_error, failed.what());
        }
        return ReplicaLoaded{};
      },
      [self, name](const ActorDirectory& actors) {
        supervise(self, name, actors);
        self->state.body->begin(actors);
      },
      [self](const BatchReady& ready, const BorrowedBatch& batch) { self->state.body->batch_ready(ready, batch); },
      [self](const StepOrder&) { self->state.body->compute_now(); },
      [self](const StepEnd&) { self->state.body->step_ended(); },
      [self](const ShardAnswer& answer) { self->state.body->answered(answer); },
      [self](const CollectiveOffer& offer, const BorrowedView& slice) { self->state.body->offered(offer, slice); },
      [self](const CollectiveDone& done) { self->state.body->share_done(done); },
      [self](const CollectiveEnded& ended) { self->state.body->collective_ended(ended); },
      [self](const PeerMessage& peer_message, const BorrowedView& vector) {
        self->state.body->peer_message(peer_message, vector);
      },
      [self](const PeerCredit& credit) { self->state.body->credit(credit); },
      [self](const SnapshotOrder& order, const BorrowedView& space) {
        return order.own_state ? self->state.body->own_state(order, space) : self->state.body->snapshot(order, space);
      },
      [self](const DeadlineReached& reached) { self->state.body->deadline_reached(reached.id); },
      [self](const UpdatesOrder&) { return Updates{self->state.body->updates()}; },
      [self](const SettleOrder&) { return self->state.body->settle_down(); },
      [self](const PeerMessageCountsOrder& order) { return self->state.body->tell_peer_messages(order); },
      [self](const StateOrder&) { return self->state.body->tell_state(); },
      [self](const MembershipNews& news) { self->state.body->membership(news); },
      [self](const Dismissal&) { return self->state.body->dismiss(); },
      [self](const TransferNews& news) { self->state.body->transfer_seen(news); },
      [self](const Tick&) { self->state.body->tick(); },
      [self](const Halt& halt) {
        const auto ended = self->state.body->halt(halt.in_order);
        self->quit(ended ? caf::error() : program_failure(ended.error().message));
      },
  };
}

}  // namespace troupe::actors
