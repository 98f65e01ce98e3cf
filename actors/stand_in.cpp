#include "actors/stand_in.hpp"

namespace troupe::actors {

namespace {

template <class Self, class Member>
void end_with(Self self, const Member& member) {
  if (!member) return;
  self->set_down_handler([self](const caf::down_msg& down) { self->quit(down.reason); });
  self->monitor(member);
}

}  // namespace

WorkerActor::behavior_type stand_in_worker(WorkerActor::pointer self, strategies::WorkerId worker, WorkerActor member,
                                           ExchangerActor exchanger) {
  end_with(self, member);
  return {
      [self, member](const Prepare& m) { return self->delegate(member, m); },
      [](const Company&) {},  // its own site tells it
      [](const BatchReady&, const LentBatch&) {},
      [](const StepOrder&) {},
      [](const StepEnd&) {},
      [self, exchanger](const ShardAnswer& answer) { self->send(exchanger, answer); },
      [](const CollectiveOffer&, const Lent&) {},  // reductions over sites are the exchangers'
      [](const CollectiveDone&) {},
      [](const CollectiveEnded&) {},
      [self, exchanger, worker](const PeerLetter& letter, const Lent& vector) {
        self->send(exchanger, OutgoingLetter{worker, letter}, vector);
      },
      [self, exchanger, worker](const PeerCredit& credit) {
        self->send(exchanger, OutgoingCredit{worker, credit});
      },
      [self, exchanger, worker](const SnapshotOrder& order, const Lent& space) {
        return self->delegate(exchanger, MemberSnapshot{false, worker, order}, space);
      },
      [self, member](const MembershipNews& m) { self->send(member, m); },
      [](const DeadlineReached&) {},
      [self, member](const Dismissal& m) { return self->delegate(member, m); },
      [self, member](const SettleOrder& m) { return self->delegate(member, m); },
      [self, member](const StateOrder& m) { return self->delegate(member, m); },
      [](const Tick&) {},
      [self, member](const Halt& m) { self->send(member, m); },
  };
}

ServerActor::behavior_type stand_in_server(ServerActor::pointer self, strategies::ShardId shard, ServerActor member,
                                           ExchangerActor exchanger) {
  end_with(self, member);
  return {
      [](const Company&) {},
      [self, exchanger](const ShardMessage& message, const Lent& slice) { self->send(exchanger, message, slice); },
      [self, exchanger, shard](const SnapshotOrder& order, const Lent& space) {
        return self->delegate(exchanger, MemberSnapshot{true, shard, order}, space);
      },
      [self, member](const StateOrder& m) { return self->delegate(member, m); },
      [self, member](const MembershipNews& m) { self->send(member, m); },
      [](const DeadlineReached&) {},
      [self, member](const Halt& m) { self->send(member, m); },
  };
}

}  // namespace troupe::actors
