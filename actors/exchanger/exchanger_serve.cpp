// What members elsewhere ask of members here. Nothing in it is believed before CallRules have seen it.
#include <algorithm>

#include <fmt/format.h>

#include "actors/requests/asking.hpp"
#include "actors/protocol/call_headers.hpp"
#include "actors/exchanger/exchanger_body.hpp"

namespace troupe::actors {

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
    else if (company_.recorder)
      self_->send(company_.recorder, Note{Note::Level::warning, std::move(*line)});
  }
  if (refusals_.enough(who) && peers_.at(site))
    courier_->give_up(*peers_[site], fmt::format("too much of what it said was refused, at last: {}", why));
}

void ExchangerBody::refuse(std::uint32_t from, const Reply& reply, const std::string& why) {
  reply(core::fail(core::Errc::corrupt, "refused: " + why));
  note_refusal(from, "a call was refused: " + why);
}

void ExchangerBody::blame(std::uint32_t site, const std::string& why) {
  note_refusal(site, "an answer was refused: " + why);
  if (peers_.at(site)) courier_->give_up(*peers_[site], why);
}

core::Result<Lent> ExchangerBody::opened(exchange::Calls::Incoming& incoming, ArenaPosition position,
                                         std::size_t floats) {
  // Who works on the vector keeps it: a call that is not answered yet owns it.
  const Lent dense{incoming.vector, std::make_shared<const Reply>(incoming.reply)};
  if (!arena_.packing || !position) return dense;
  auto buffer = core::Buffer::allocate(*setup_.memory, floats);
  if (!buffer) return tl::unexpected(buffer.error());
  const auto whole = std::make_shared<core::Buffer>(std::move(*buffer));
  std::ranges::fill(whole->view(), 0.F);
  arena_.packing->unpack(dense.data, *position, whole->view());
  incoming.reply = [packing = arena_.packing, dense, whole, at = *position,
                    reply = std::move(incoming.reply)](core::Result<std::string> result) {
    packing->pack(whole->view(), at, dense.data);
    reply(std::move(result));
  };
  return Lent{whole->view(), whole};
}

void ExchangerBody::serve(exchange::Calls::Incoming incoming) {
  const auto from = site_of(incoming.from);
  if (!from) return incoming.reply(core::fail(core::Errc::peer_lost, "it has been left"));
  auto& system = self_->system();
  What what{};
  const bool starts = !incoming.header.empty() && incoming.header.front() == static_cast<char>(What::start);
  if (starts) return give_piece(*from, incoming);
  if (!serving_) return held_.push_back(std::move(incoming));
  ShardMessage message;
  OutgoingLetter letter;
  MemberSnapshot snapshot;
  if (unpack_header(system, incoming.header, what, message) && what == What::shard)
    return serve(*from, message, incoming);
  if (unpack_header(system, incoming.header, what, letter) && what == What::letter)
    return serve(*from, letter, incoming);
  if (unpack_header(system, incoming.header, what, snapshot) && what == What::snapshot)
    return serve(*from, snapshot, incoming);
  refuse(*from, incoming.reply, "it makes no sense");
}

void ExchangerBody::serve(std::uint32_t from, const ShardMessage& message, exchange::Calls::Incoming& incoming) {
  const auto& request = message.request;
  if (const auto refusal = rules_.check(from, message, incoming)) return refuse(from, incoming.reply, *refusal);
  if (!is_member(request.worker))
    return refuse(from, incoming.reply, fmt::format("worker {} is no member any more", request.worker));
  const std::tuple key{request.worker, message.shard, request.exchange};
  if (asked_.contains(key))
    return refuse(from, incoming.reply, fmt::format("exchange {} is under way already", request.exchange));
  const auto vector = opened(incoming, rules_.position_of_shard(message.shard), rules_.floats_of_shard(message.shard));
  if (!vector) return incoming.reply(tl::unexpected(vector.error()));
  asked_[key] = std::move(incoming.reply);
  auto heard = message;
  heard.sent_ns = setup_.clock->now().count();  // it lies in the server's queue from now on
  self_->send(company_.servers[message.shard], heard, *vector);
}

void ExchangerBody::serve(std::uint32_t from, const OutgoingLetter& letter, exchange::Calls::Incoming& incoming) {
  if (const auto refusal = rules_.check(from, letter, incoming)) return refuse(from, incoming.reply, *refusal);
  if (!is_member(letter.letter.from))
    return refuse(from, incoming.reply, fmt::format("worker {} is no member any more", letter.letter.from));
  const std::pair key{letter.letter.from, letter.to};
  if (unread_.contains(key))
    return refuse(from, incoming.reply,
                  fmt::format("worker {} has not read the last letter of worker {}", letter.to, letter.letter.from));
  const auto vector = opened(incoming, 0, rules_.arena_floats());
  if (!vector) return incoming.reply(tl::unexpected(vector.error()));
  unread_[key] = std::move(incoming.reply);
  self_->send(company_.workers[letter.to], letter.letter, *vector);
}

void ExchangerBody::serve(std::uint32_t from, const MemberSnapshot& snapshot, exchange::Calls::Incoming& incoming) {
  if (const auto refusal = rules_.check(from, snapshot, incoming)) return refuse(from, incoming.reply, *refusal);
  const auto vector = opened(incoming, rules_.position_of(snapshot), rules_.floats_of(snapshot));
  if (!vector) return incoming.reply(tl::unexpected(vector.error()));
  const auto answered = [this, reply = incoming.reply](const SnapshotTaken& taken) {
    reply(pack_header(self_->system(), taken));
    settle();
  };
  const auto failed = [this, reply = incoming.reply](const caf::error& error) {
    reply(core::fail(core::Errc::timeout, "snapshot: " + self_->system().render(error)));
    settle();
  };
  // The coordinator, who asks, gives up when it takes too long.
  if (snapshot.server)
    self_->request(company_.servers[snapshot.member], kNoDeadline, snapshot.order, *vector).then(answered, failed);
  else
    self_->request(company_.workers[snapshot.member], kNoDeadline, snapshot.order, *vector).then(answered, failed);
}

void ExchangerBody::answer(const ShardAnswer& answer) {
  const auto& reply = answer.reply;
  auto node = asked_.extract({reply.worker, reply.shard, reply.exchange});
  if (node.empty()) return;
  if (!answer.refused.empty())
    refuse(company_.worker_sites.at(reply.worker), node.mapped(), answer.refused);
  else
    node.mapped()(pack_header(self_->system(), answer));
  settle();
}

void ExchangerBody::credit(const OutgoingCredit& credit) {
  auto node = unread_.extract({credit.to, credit.credit.from});
  if (node.empty()) return;
  node.mapped()(std::string());
  settle();
}

void ExchangerBody::give_piece(std::uint32_t from, const exchange::Calls::Incoming& incoming) {
  What what{};
  std::uint64_t offset = 0;
  if (!setup_.start.file || incoming.lend != exchange::Lend::write ||
      !unpack_header(self_->system(), incoming.header, what, offset) || offset >= setup_.start.file->size())
    return refuse(from, incoming.reply, "there is no such start state");
  const auto& file = *setup_.start.file;
  const auto room = std::as_writable_bytes(incoming.vector);
  const auto count = std::min<std::uint64_t>(room.size(), file.size() - offset);
  std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), count, room.begin());
  incoming.reply(pack_header(self_->system(), static_cast<std::uint64_t>(file.size())));
}

}  // namespace troupe::actors
