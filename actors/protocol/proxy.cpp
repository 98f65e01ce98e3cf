#include "actors/protocol/proxy.hpp"

#include <functional>
#include <map>
#include <utility>

#include "actors/protocol/refusal.hpp"
#include "actors/requests/asking.hpp"

namespace troupe::actors {

namespace {

/// Requests to a member of another site. CAF lets them wait for their deadlines when the member is lost; this class answers them at once.
/// Other deadlines are the requester's.
class Forwarded {
 public:
  template <class... Answers, class Self, class Member, class Message>
  static caf::result<Answers...> to(const std::shared_ptr<Forwarded>& forwarded, Self self, const Member& member,
                                    const Message& message) {
    auto promise = self->template make_response_promise<Answers...>();
    const auto which = forwarded->next_++;
    forwarded->open_[which] = [promise](const caf::error& error) mutable { promise.deliver(error); };
    // The answer ends it, or the loss of the member (lost() below). The requester has a deadline of its own.
    self->request(member, kNoDeadline, message)
        .then(
            [forwarded, which, promise](const Answers&... answers) mutable {
              if (forwarded->open_.erase(which) > 0) promise.deliver(answers...);
            },
            [forwarded, which, promise](const caf::error& error) mutable {
              if (forwarded->open_.erase(which) > 0) promise.deliver(error);
            });
    return promise;
  }
  void lost(const caf::error& why) {
    for (auto& [which, tell] : std::exchange(open_, {})) tell(why);
  }

 private:
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::function<void(const caf::error&)>> open_;
};

/// Makes `self` quit when the member ends, if there is a member.
template <class Self, class Member>
std::shared_ptr<Forwarded> end_with(Self self, const Member& member) {
  auto forwarded = std::make_shared<Forwarded>();
  if (!member) return forwarded;
  self->set_down_handler([self, forwarded](const caf::down_msg& down) {
    forwarded->lost(down.reason);
    self->quit(down.reason);
  });
  self->monitor(member);
  return forwarded;
}

}  // namespace

WorkerActor::behavior_type worker_proxy(WorkerActor::pointer self, strategies::WorkerId worker, WorkerActor member,
                                        ExchangerActor exchanger) {
  const auto forwarded = end_with(self, member);
  return {
      [self, member](const Prepare& m) { return self->delegate(member, m); },
      [](const ReplicaStart&) -> caf::result<ReplicaLoaded> { return caf::sec::unexpected_message; },  // its own site's
      [](const ActorDirectory&) {},  // its own site sends it
      [](const BatchReady&, const BorrowedBatch&) {},
      [](const StepOrder&) {},
      [](const StepEnd&) {},
      [self, exchanger](const ShardAnswer& answer) { self->send(exchanger, answer); },
      [](const CollectiveOffer&, const BorrowedView&) {},  // the exchangers reduce over sites
      [](const CollectiveDone&) {},
      [](const CollectiveEnded&) {},
      [self, exchanger, worker](const PeerMessage& peer_message, const BorrowedView& vector) {
        self->send(exchanger, OutgoingPeerMessage{worker, peer_message}, vector);
      },
      [self, exchanger, worker](const PeerCredit& credit) {
        self->send(exchanger, OutgoingCredit{worker, credit});
      },
      [self, exchanger, worker](const SnapshotOrder& order, const BorrowedView& space) {
        return self->delegate(exchanger, MemberSnapshot{false, worker, order}, space);
      },
      [self, member](const MembershipNews& m) { self->send(member, m); },
      [self, member](const TransferNews& m) { self->send(member, m); },
      [](const DeadlineReached&) {},
      [=](const Dismissal& m) { return Forwarded::to<Dismissed>(forwarded, self, member, m); },
      [=](const UpdatesOrder& m) { return Forwarded::to<Updates>(forwarded, self, member, m); },
      [=](const SettleOrder& m) { return Forwarded::to<Settled>(forwarded, self, member, m); },
      [=](const StateOrder& m) { return Forwarded::to<MemberState>(forwarded, self, member, m); },
      [=](const PeerMessageCountsOrder& m) { return Forwarded::to<PeerMessageCounts>(forwarded, self, member, m); },
      [](const Tick&) {},
      [self, member](const Halt& m) { self->send(member, m); },
  };
}

ServerActor::behavior_type server_proxy(ServerActor::pointer self, strategies::ShardId shard, ServerActor member,
                                        ExchangerActor exchanger) {
  const auto forwarded = end_with(self, member);
  return {
      [](const ActorDirectory&) {},  // its own site sends it
      [self, exchanger](const ShardMessage& message, const BorrowedView& slice) {
        self->send(exchanger, message, slice);
      },
      [self, exchanger, shard](const SnapshotOrder& order, const BorrowedView& space) {
        return self->delegate(exchanger, MemberSnapshot{true, shard, order}, space);
      },
      [=](const StateOrder& m) { return Forwarded::to<MemberState>(forwarded, self, member, m); },
      [self, member](const MembershipNews& m) { self->send(member, m); },
      [](const DeadlineReached&) {},
      [self, member](const Halt& m) { self->send(member, m); },
  };
}

bool is_gone(const caf::error& error) {
  return error == caf::exit_reason::remote_link_unreachable || error == caf::sec::request_receiver_down;
}

std::string reason_of(caf::actor_system& system, const caf::error& error) {
  if (is_gone(error)) return "its process no longer answers";
  if (!error) return "it has ended";
  const bool told = error == caf::sec::runtime_error && error.context().match_elements<std::string>();
  return told ? one_line(error.context().get_as<std::string>(0)) : system.render(error);
}

SiteActor::behavior_type site_proxy(SiteActor::pointer self, SiteActor site) {
  const auto forwarded = end_with(self, site);
  return {
      [=](const SiteOrder& m) { return Forwarded::to<SiteOpened>(forwarded, self, site, m); },
      [=](const CompileOrder& m) { return Forwarded::to<SiteReady>(forwarded, self, site, m); },
      [=](const SiteAddresses& m) { return Forwarded::to<SiteReady, SiteMembers>(forwarded, self, site, m); },
      [=](const SiteDirectory& m) { return Forwarded::to<SiteBegun>(forwarded, self, site, m); },
      [=](const MeasureOrder& m) { return Forwarded::to<Measured>(forwarded, self, site, m); },
      [self, site](const Halt& m) { self->send(site, m); },
  };
}

NodeActor::behavior_type node_proxy(NodeActor::pointer self, NodeActor node) {
  const auto forwarded = end_with(self, node);
  return {
      [=](const NodeQuery& m) { return Forwarded::to<NodeFacts>(forwarded, self, node, m); },
      [=](const GpuQuery& m) { return Forwarded::to<GpuReport>(forwarded, self, node, m); },
      [=](const SiteOrder& m) { return Forwarded::to<SiteOpened, OpenedSite>(forwarded, self, node, m); },
  };
}

}  // namespace troupe::actors
