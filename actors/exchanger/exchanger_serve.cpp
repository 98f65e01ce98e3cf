// Calls of other sites to members here. CallChecks check each call first.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "actors/exchanger/exchanger_body.hpp"
#include "actors/protocol/call_headers.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/requests/asking.hpp"

namespace troupe::actors {

namespace {

/// Beyond every start state.
constexpr auto kNoOffset = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::optional<std::uint32_t> ExchangerBody::site_of(transport::Peer peer) const {
  const auto found = std::ranges::find(peers_, std::optional(peer));
  if (found == peers_.end()) return {};
  return static_cast<std::uint32_t>(found - peers_.begin());
}

bool ExchangerBody::is_member(strategies::WorkerId worker) const {
  return std::ranges::binary_search(members_, worker);
}

void ExchangerBody::note_refusal(std::uint32_t site, const std::string& why) {
  const auto who = fmt::format("site {}", site);
  if (auto line = refusals_.add(who, why)) {
    const auto& log = setup_.options.tcp.on_refused;
    if (log)
      log({who, std::move(*line)});
    else if (actors_.recorder)
      self_->send(actors_.recorder, Note{Note::Level::warning, std::move(*line)});
  }
  if (refusals_.enough(who) && peers_.at(site))
    operations_->give_up(*peers_[site], fmt::format("too many refused calls; the last: {}", why));
}

void ExchangerBody::refuse(std::uint32_t from, const Reply& reply, const std::string& why) {
  reply(core::fail(core::Errc::corrupt, "refused: " + why));
  note_refusal(from, "a call was refused: " + why);
}

void ExchangerBody::reject_answer(std::uint32_t site, const std::string& why) {
  note_refusal(site, "an answer was refused: " + why);
  if (peers_.at(site)) operations_->give_up(*peers_[site], why);
}

core::Result<BorrowedView> ExchangerBody::opened(const exchange::Rpc::Incoming& incoming, ArenaPosition position,
                                                 std::size_t floats) const {
  const auto* const packing = packing_at(position);
  if (!packing) return BorrowedView{incoming.vector, incoming.owner()};
  auto whole = incoming.padded(*packing, *position, floats);
  if (!whole) return tl::unexpected(std::move(whole.error()));
  return BorrowedView{*whole, incoming.owner()};
}

void ExchangerBody::serve(exchange::Rpc::Incoming incoming) {
  if (ends()) return incoming.reply(core::fail(core::Errc::peer_lost, "this site ends"));
  const auto from = site_of(incoming.from);
  if (!from) return incoming.reply(core::fail(core::Errc::peer_lost, "this site has disconnected the caller"));
  HeaderReader header(self_->system(), incoming.header);
  CallKind kind{};
  const bool begun = header.next(kind);
  if (begun && kind == CallKind::start) {
    std::uint64_t offset = 0;
    return give_piece(*from, header.last(offset) ? offset : kNoOffset, incoming);
  }
  if (!serving_) return held_.push_back(std::move(incoming));
  const auto serves = [&](auto message) {
    if (!header.last(message)) return false;
    serve(*from, message, incoming);
    return true;
  };
  const bool served = begun && ((kind == CallKind::shard && serves(ShardMessage{})) ||
                                (kind == CallKind::peer_message && serves(OutgoingPeerMessage{})) ||
                                (kind == CallKind::snapshot && serves(MemberSnapshot{})));
  if (!served) refuse(*from, incoming.reply, "invalid message");
}

void ExchangerBody::serve(std::uint32_t from, const ShardMessage& message, exchange::Rpc::Incoming& incoming) {
  const auto& request = message.request;
  if (const auto refusal = checks_.check(from, message, incoming)) return refuse(from, incoming.reply, *refusal);
  if (!is_member(request.worker))
    return refuse(from, incoming.reply, fmt::format("worker {} is no longer a member", request.worker));
  const std::tuple key{request.worker, message.shard, request.exchange};
  if (asked_.contains(key))
    return refuse(from, incoming.reply, fmt::format("exchange {} is under way already", request.exchange));
  const auto vector =
      opened(incoming, checks_.position_of_shard(message.shard), checks_.floats_of_shard(message.shard));
  if (!vector) return incoming.reply(tl::unexpected(vector.error()));
  asked_[key] = std::move(incoming.reply);
  auto received = message;
  received.sent_ns = setup_.clock->now().count();  // the time in the server's queue begins now
  self_->send(actors_.servers[message.shard], received, *vector);
}

void ExchangerBody::serve(std::uint32_t from, const OutgoingPeerMessage& peer_message,
                          exchange::Rpc::Incoming& incoming) {
  if (const auto refusal = checks_.check(from, peer_message, incoming)) return refuse(from, incoming.reply, *refusal);
  if (!is_member(peer_message.peer_message.from))
    return refuse(from, incoming.reply, fmt::format("worker {} is no longer a member", peer_message.peer_message.from));
  const std::pair key{peer_message.peer_message.from, peer_message.to};
  if (unread_.contains(key))
    return refuse(from, incoming.reply,
                  fmt::format("worker {} has not read the last peer message of worker {}", peer_message.to,
                              peer_message.peer_message.from));
  const auto vector = opened(incoming, 0, checks_.arena_floats());
  if (!vector) return incoming.reply(tl::unexpected(vector.error()));
  unread_[key] = std::move(incoming.reply);
  self_->send(actors_.workers[peer_message.to], peer_message.peer_message, *vector);
}

void ExchangerBody::serve(std::uint32_t from, const MemberSnapshot& snapshot, exchange::Rpc::Incoming& incoming) {
  if (const auto refusal = checks_.check(from, snapshot, incoming)) return refuse(from, incoming.reply, *refusal);
  const auto vector = opened(incoming, checks_.position_of(snapshot), checks_.floats_of(snapshot));
  if (!vector) return incoming.reply(tl::unexpected(vector.error()));
  auto space = *vector;  // which the host writes
  if (on_device()) {
    const auto host = std::make_shared<std::vector<float>>(vector->data.size());
    space = {*host, host};
  }
  const auto answered = [this, reply = incoming.reply, space, vector = *vector](const SnapshotTaken& taken) {
    if (on_device()) setup_.kernels->upload(vector.data, space.data);
    reply(write_header(self_->system(), header_, taken));
    after_event();
  };
  const auto failed = [this, reply = incoming.reply](const caf::error& error) {
    if (const auto why = program_failure_of(error))
      reply(core::fail(core::Errc::program, *why));
    else
      reply(core::fail(core::Errc::timeout, "snapshot: " + self_->system().render(error)));
    after_event();
  };
  // The member answers at once, or it ends, which ends the request. The coordinator, who asked, waits until nothing moves.
  if (snapshot.server)
    self_->request(actors_.servers[snapshot.member], kNoDeadline, snapshot.order, space).then(answered, failed);
  else
    self_->request(actors_.workers[snapshot.member], kNoDeadline, snapshot.order, space).then(answered, failed);
}

void ExchangerBody::answer(const ShardAnswer& answer) {
  const auto& reply = answer.reply;
  auto node = asked_.extract({reply.worker, reply.shard, reply.exchange});
  if (node.empty()) return;
  if (!answer.refused.empty())
    refuse(actors_.worker_sites.at(reply.worker), node.mapped(), answer.refused);
  else
    node.mapped()(write_header(self_->system(), header_, answer));
  after_event();
}

void ExchangerBody::credit(const OutgoingCredit& credit) {
  auto node = unread_.extract({credit.to, credit.credit.from});
  if (node.empty()) return;
  node.mapped()("");
  after_event();
}

void ExchangerBody::give_piece(std::uint32_t from, std::uint64_t offset, const exchange::Rpc::Incoming& incoming) {
  if (!setup_.start.file || incoming.lend != exchange::Lend::write || offset >= setup_.start.file->size())
    return refuse(from, incoming.reply, "there is no such start state");
  const auto& file = *setup_.start.file;
  std::vector<float> floats(incoming.vector.size());
  const auto room = std::as_writable_bytes(std::span(floats));
  const auto count = std::min<std::uint64_t>(room.size(), file.size() - offset);
  std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), count, room.begin());
  setup_.kernels->upload(incoming.vector, floats);
  incoming.reply(write_header(self_->system(), header_, static_cast<std::uint64_t>(file.size())));
}

}  // namespace troupe::actors
