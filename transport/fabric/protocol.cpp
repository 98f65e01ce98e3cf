// The part of FabricEndpoint that handles frames and ended transfers.
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/common/wire_hash.hpp"
#include "transport/fabric/endpoint.hpp"

namespace troupe::transport {
namespace {

/// Limit of members that sent hello and that this member did not connect to. They know the secret, so more means an error
/// elsewhere.
constexpr std::size_t kMostCallers = 4096;

constexpr std::string_view kDamagedHere = "bytes from it were damaged on the way";
constexpr std::string_view kDamagedThere = "bytes from you were damaged on the way";

OperationId operation_of(const FrameHead& head) noexcept { return OperationId{head.operation}; }

/// The time depends only on the lengths.
bool equal_secrets(std::string_view mine, std::string_view theirs) noexcept {
  unsigned difference = mine.size() != theirs.size();
  for (std::size_t i = 0; i < theirs.size() && !mine.empty(); ++i)
    difference |= static_cast<unsigned>(mine[i % mine.size()] ^ theirs[i]);
  return difference == 0;
}

}  // namespace

FabricEndpoint::Link* FabricEndpoint::link_of(std::uint64_t id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : &at(found->second);
}

void FabricEndpoint::reply(Link& link, FrameHead head, std::span<const std::byte> body) {
  head.to = link.remote;
  head.from = link.id;
  head.number = ++link.frames_sent;
  fabric_->send_frame(link.wire, encode(head, body));
}

void FabricEndpoint::greet(Link& link) {
  link.told = link.heard;
  const FrameHead hello{.kind = FrameKind::hello,
                        .to = link.heard,
                        .from = link.id,
                        .operation = wire_hash(link.address),
                        .tag = wire_hash(address_.text),
                        .size = host_};
  fabric_->send_frame(link.wire, encode(hello, encode(address_.text, secret_)));
}

void FabricEndpoint::offer(Link& link, OperationId operation, Sending& sending) {
  sending.offered = true;
  const auto& memory = sending.memory;
  reply(link,
        {.kind = FrameKind::offer,
         .operation = static_cast<std::uint64_t>(operation),
         .tag = static_cast<std::uint64_t>(sending.tag),
         .size = memory.size},
        {memory.data, memory.size <= kShortMessage ? memory.size : 0});
}

void FabricEndpoint::deliver(Link& link, Tag tag, Offered offered, Posted posted) {
  const auto sender = static_cast<std::uint64_t>(offered.operation);
  const std::size_t size = offered.size;
  if (size != posted.memory.size) {
    finish({.operation = posted.operation,
            .peer = link.peer,
            .outcome = Outcome::failed,
            .error = {core::Errc::corrupt, fmt::format("{} from {}: the message has {} bytes, the receive {}",
                                                       to_string(tag), link.name, size, posted.memory.size)}});
    return reply(link, {.kind = FrameKind::done, .operation = sender, .tag = 1, .size = posted.memory.size});
  }
  if (size > kShortMessage) {
    const TransferId transfer{next_transfer_++};
    moving_.emplace(
        transfer,
        Moving{.kind = Moving::Kind::receive, .peer = link.peer, .operation = posted.operation, .bytes = size});
    link.arriving.emplace(transfer, Arriving{.posted = posted, .tag = tag, .sender = offered.operation});
    const std::uint64_t channel = fabric_->receive(link.wire, posted.memory, transfer);
    return reply(
        link,
        {.kind = FrameKind::accept, .operation = sender, .tag = channel, .size = static_cast<std::uint64_t>(transfer)});
  }
  if (size > 0) std::memcpy(posted.memory.data, offered.bytes.data(), size);
  link.traffic.messages_received += 1;
  link.traffic.bytes_received += size;
  finish({.operation = posted.operation, .peer = link.peer, .bytes = size});
  reply(link, {.kind = FrameKind::done, .operation = sender, .size = size});
}

void FabricEndpoint::on_frame(std::span<const std::byte> bytes) {
  const auto frame = parse(bytes);
  if (!frame) return;  // not a frame of ours
  if (frame->head_damaged || frame->body_damaged) return on_damaged(*frame);
  if (frame->head.kind == FrameKind::hello) return on_hello(*frame);
  if (frame->head.kind == FrameKind::goodbye) return on_goodbye(*frame);
  Link* link = link_of(frame->head.to);
  if (!link || link->remote == 0 || link->remote != frame->head.from) return;  // of a lost link
  if (frame->head.number != ++link->frames_seen)
    return end(*link, Outcome::failed, "a frame from it did not arrive", "a frame from you did not arrive");
  switch (frame->head.kind) {
    case FrameKind::offer: return on_offer(*link, *frame);
    case FrameKind::accept: return on_accept(*link, frame->head);
    case FrameKind::sum: return on_sum(*link, frame->head);
    case FrameKind::done: return on_done(*link, frame->head);
    case FrameKind::withdraw: {
      const Tag tag{frame->head.tag};
      // If it does not wait, it was matched, and its end informs the sender.
      if (link->matcher.remove_message(tag, operation_of(frame->head)))
        reply(*link, {.kind = FrameKind::withdrawn, .operation = frame->head.operation});
      return;
    }
    case FrameKind::withdrawn: {
      const auto found = link->sends.find(operation_of(frame->head));
      if (found == link->sends.end() || found->second.is_in_use()) return;
      link->bytes -= found->second.memory.size;
      finish({.operation = found->first, .peer = link->peer, .outcome = Outcome::cancelled});
      link->sends.erase(found);
      return;
    }
    default: return;
  }
}

FabricEndpoint::Link* FabricEndpoint::suspect(const FabricFrame& frame) const {
  // A link number does not match by chance. The number of a peer that sent hello identifies the link when the other one is damaged.
  for (const auto& link : links_)
    if (!link->lost && (link->id == frame.head.to || (link->heard != 0 && link->heard == frame.head.from)))
      return link.get();
  // A first hello names no link yet. It contains its sender's address and the hash of that address.
  const auto texts = frame.body_damaged ? std::nullopt : parse_texts(frame.body);
  for (const auto& link : links_)
    if (!link->lost && link->remote == 0 &&
        (wire_hash(link->address) == frame.head.tag || (texts && link->address == texts->first)))
      return link.get();
  return nullptr;
}

void FabricEndpoint::on_damaged(const FabricFrame& frame) {
  Link* link = suspect(frame);
  if (!link) return;  // a pending connection's or unknown: then the next frame's number reveals the gap
  if (!frame.head_damaged && frame.head.kind == FrameKind::offer && link->remote == frame.head.from)
    if (const auto posted = link->matcher.take_receive(Tag{frame.head.tag}))
      fail_damaged(*link, posted->operation, Tag{frame.head.tag});
  end(*link, Outcome::failed, kDamagedHere, kDamagedThere);
}

void FabricEndpoint::fail_damaged(const Link& link, OperationId operation, Tag tag) {
  finish({.operation = operation,
          .peer = link.peer,
          .outcome = Outcome::failed,
          .error = {core::Errc::corrupt,
                    fmt::format("{} from {}: bytes were damaged on the way; the connection is given up", to_string(tag),
                                link.name)}});
}

void FabricEndpoint::on_hello(const FabricFrame& frame) {
  const FrameHead& head = frame.head;
  const auto texts = parse_texts(frame.body);
  if (!texts || head.from == 0 || head.operation != wire_hash(address_.text)) return;
  const auto& [address, secret] = *texts;
  Link* link = connected_to(address);
  if (!equal_secrets(secret_, secret)) {
    if (!link || link->remote != 0) return;  // a pending connection gets no answer
    link->heard = head.from;
    return end(*link, Outcome::failed, "it has the secret of another run", "the secret is that of another run");
  }
  if (link && link->remote != 0) {
    if (head.from <= link->remote) return;
    end(*link, Outcome::failed, "it connected anew", {});
    link = nullptr;
  }
  if (closed_) return dismiss(address, head.from);
  if (!link) {
    if (!callers_.contains(address) && callers_.size() >= kMostCallers) return;
    auto& caller = callers_[address];
    caller = std::max(caller, head.from);
    return;
  }
  if (head.from < link->heard) return;  // older than the last hello
  link->heard = head.from;
  if (link->told != link->heard) greet(*link);
  if (head.to != link->id) return;
  link->remote = head.from;
  link->sums = head.size == 0 || head.size != host_;
  waiting_.erase(*link->establishing);
  completions_->push({.operation = *std::exchange(link->establishing, {}), .peer = link->peer});
  for (auto& [operation, sending] : link->sends) offer(*link, operation, sending);
}

void FabricEndpoint::on_goodbye(const FabricFrame& frame) {
  const auto texts = parse_texts(frame.body);
  if (!texts) return;
  const auto& [address, why] = *texts;
  if (const auto caller = callers_.find(address); caller != callers_.end() && caller->second == frame.head.from)
    callers_.erase(caller);
  Link* link = connected_to(address);
  if (!link) return;
  if (link->id == frame.head.to || (link->remote != 0 && link->remote == frame.head.from))
    return end(*link, Outcome::failed, why, {});
  // The peer left before it knew of our connect(): it may connect again.
  if (link->heard == frame.head.from) link->heard = link->told = 0;
}

void FabricEndpoint::on_offer(Link& link, const FabricFrame& frame) {
  const Tag tag{frame.head.tag};
  Offered offered{operation_of(frame.head), frame.head.size, {frame.body.begin(), frame.body.end()}};
  if (link.matcher.waiting_messages() >= credit_.messages)
    return end(link, Outcome::failed, "it sent more than its credit", "you sent more than your credit");
  if (const auto posted = link.matcher.arrive(tag, offered)) deliver(link, tag, std::move(offered), *posted);
}

void FabricEndpoint::on_accept(Link& link, const FrameHead& head) {
  const auto found = link.sends.find(operation_of(head));
  if (found == link.sends.end() || found->second.is_in_use() || found->second.done) return;
  Sending& sending = found->second;
  sending.moving = true;
  const TransferId transfer{next_transfer_++};
  moving_.emplace(
      transfer,
      Moving{.kind = Moving::Kind::send, .peer = link.peer, .operation = found->first, .bytes = sending.memory.size});
  fabric_->send(link.wire, head.tag, sending.memory, transfer);
  if (!link.sums) return;
  if (sending.memory.space == core::MemorySpace::device) {
    sending.summing = true;
    summing_.emplace(checksums_.begin(sending.memory),
                     Summing{link.peer, found->first, TransferId{head.size}, /*is_send=*/true});
    return;
  }
  // Hash now, while the fabric reads the same memory: the second reader finds it in the cache.
  reply(link,
        {.kind = FrameKind::sum, .operation = head.size, .tag = wire_hash({sending.memory.data, sending.memory.size})});
}

void FabricEndpoint::on_sum(Link& link, const FrameHead& head) {
  const TransferId transfer{head.operation};
  const auto found = link.arriving.find(transfer);
  if (found == link.arriving.end() || found->second.sum) return;
  found->second.sum = head.tag;
  complete_receive(link, transfer);
}

void FabricEndpoint::on_done(Link& link, const FrameHead& head) {
  const auto found = link.sends.find(operation_of(head));
  if (found == link.sends.end()) return;
  found->second.done = head;
  complete_send(link, found->first);
}

void FabricEndpoint::complete_send(Link& link, OperationId operation) {
  const Sending& sending = link.sends.at(operation);
  if (sending.is_in_use() || !sending.done) return;
  const std::size_t size = sending.memory.size;
  Completion sent{.operation = operation, .peer = link.peer, .bytes = size};
  if (sending.done->tag != 0) {
    sent.outcome = Outcome::failed;
    sent.bytes = 0;
    sent.error = {core::Errc::corrupt, fmt::format("{} to {}: the message has {} bytes, the receive {}",
                                                   to_string(sending.tag), link.name, size, sending.done->size)};
  } else {
    link.traffic.messages_sent += 1;
    link.traffic.bytes_sent += size;
  }
  link.bytes -= size;
  link.sends.erase(operation);
  finish(std::move(sent));
}

void FabricEndpoint::on_piece(TransferId transfer) {
  const auto moving = moving_.find(transfer);
  if (moving != moving_.end() && moving->second.kind != Moving::Kind::sum) at(moving->second.peer).pieces += 1;
}

void FabricEndpoint::on_transferred(TransferId transfer, bool whole) {
  const auto node = moving_.extract(transfer);
  if (node.empty()) return;
  const Moving& moved = node.mapped();
  if (moved.kind == Moving::Kind::sum) {
    Completion ended{.operation = moved.operation, .outcome = Outcome::cancelled};
    if (whole) {
      ended.outcome = Outcome::done;
      ended.bytes = moved.bytes;
    } else if (!closed_) {
      ended.outcome = Outcome::failed;
      ended.error = {core::Errc::peer_lost, "a member was lost, or left, during a sum over all of them"};
    }
    return finish(std::move(ended));
  }
  const bool is_send = moved.kind == Moving::Kind::send;
  Link& link = at(moved.peer);
  if (is_send) link.sends.at(moved.operation).moving = false;
  if (!link.lost && !whole) end(link, Outcome::failed, "a transfer broke off", "a transfer broke off");
  if (link.lost) {
    link.arriving.erase(transfer);
    return is_send ? release_send(link, moved.operation) : finish(lost_with(link, moved.operation));
  }
  if (is_send) return complete_send(link, moved.operation);
  link.arriving.at(transfer).whole = true;
  complete_receive(link, transfer);
}

void FabricEndpoint::complete_receive(Link& link, TransferId transfer) {
  Arriving& arriving = link.arriving.at(transfer);
  if (!arriving.whole || (link.sums && !arriving.sum)) return;
  const auto& [operation, memory] = arriving.posted;
  if (!link.sums) return check_receive(link, transfer, 0);
  if (memory.space != core::MemorySpace::device)
    return check_receive(link, transfer, wire_hash({memory.data, memory.size}));
  arriving.summing = true;
  summing_.emplace(checksums_.begin(memory), Summing{link.peer, operation, transfer, /*is_send=*/false});
}

void FabricEndpoint::check_receive(Link& link, TransferId transfer, std::uint64_t sum) {
  const Arriving arrived = link.arriving.extract(transfer).mapped();
  const auto& [operation, memory] = arrived.posted;
  if (link.sums && sum != *arrived.sum) {
    fail_damaged(link, operation, arrived.tag);
    return end(link, Outcome::failed, kDamagedHere, kDamagedThere);
  }
  link.traffic.messages_received += 1;
  link.traffic.bytes_received += memory.size;
  finish({.operation = operation, .peer = link.peer, .bytes = memory.size});
  reply(link, {.kind = FrameKind::done, .operation = static_cast<std::uint64_t>(arrived.sender), .size = memory.size});
}

}  // namespace troupe::transport
