#include "actors/exchanger/exchanger.hpp"

#include "actors/exchanger/exchanger_body.hpp"
#include "actors/protocol/supervision.hpp"

namespace troupe::actors {

ExchangerState::ExchangerState() = default;
ExchangerState::~ExchangerState() = default;

ExchangerActor::behavior_type exchanger(ExchangerActor::stateful_pointer<ExchangerState> self, ExchangerSetup setup) {
  const auto name = "exchanger " + std::to_string(setup.site);
  const auto end = [self] {
    self->state.body->halt();
    self->quit();
  };
  self->state.body = std::make_unique<ExchangerBody>(self, std::move(setup));
  return {
      [self](const Prepare&) -> caf::result<SiteAddress, SiteMemory> {
        auto address = self->state.body->open();
        return {std::move(address), self->state.body->memory()};
      },
      [self](const SiteAddresses& addresses) { self->state.body->meet(addresses); },
      [self](const StartPayload& start) { self->state.body->offer(start); },
      [self](const ArenaPacking& arena) { self->state.body->pack_arenas(arena); },
      [self](const SiteMoved& moved) { return self->state.body->address_changed(moved); },
      [self](const StartOrder&) { return self->state.body->fetch_start(); },
      [self, name](const ActorDirectory& actors) {
        report_exceptions(self, name, actors);
        self->state.body->begin(actors);
      },
      [self](const SiteBegun&) { self->state.body->serve_all(); },
      [self, end](const Completed&) {
        self->state.body->poll();
        if (self->state.body->departed()) end();
      },
      [self](const ShardMessage& message, const BorrowedView& slice) { self->state.body->request(message, slice); },
      [self](const ShardAnswer& answer) { self->state.body->answer(answer); },
      [self](const OutgoingPeerMessage& peer_message, const BorrowedView& vector) {
        self->state.body->peer_message(peer_message, vector);
      },
      [self](const OutgoingCredit& credit) { self->state.body->credit(credit); },
      [self](const MemberSnapshot& snapshot, const BorrowedView& space) {
        return self->state.body->snapshot(snapshot, space);
      },
      [self](const CollectiveOrder& order, const BorrowedView& slice) { self->state.body->collective(order, slice); },
      [self](const MeasureOrder& order) { return self->state.body->measure(order); },
      [self](const MembershipNews& news) { self->state.body->membership(news); },
      [self](const Tick&) { self->state.body->tick(); },
      [self, end](const Halt&) {
        self->state.body->depart();
        if (self->state.body->departed()) end();
      },
  };
}

}  // namespace troupe::actors
