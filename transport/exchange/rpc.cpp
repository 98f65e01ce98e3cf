#include "transport/exchange/rpc.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "transport/exchange/rpc_state.hpp"

namespace troupe::exchange {

using core::Errc;
using transport::Peer;
using transport::TagKind;
using Type = Envelope::Type;

namespace {

constexpr std::uint32_t kIds = 1U << 24;  // as many as a tag can number
/// For a vector that is sent.
transport::MemoryView read_only(transport::ConstMemoryView view) {
  return {const_cast<std::byte*>(view.data), view.size, view.space};
}

}  // namespace

Rpc::Rpc(transport::Endpoint& endpoint, OperationQueue& operations, const core::Kernels& kernels,
         core::Allocator& memory, std::size_t most_floats, std::uint8_t run, Handler handler, Lost lost,
         const PieceOptions& pieces, Arenas* arenas)
    : endpoint_(endpoint),
      operations_(operations),
      kernels_(kernels),
      vectors_(memory),
      most_floats_(most_floats),
      run_(run),
      pieces_(pieces),
      arenas_(arenas),
      handler_(std::move(handler)),
      lost_(std::move(lost)) {}
Rpc::~Rpc() = default;

transport::TagFields Rpc::fields(TagKind kind, std::uint32_t id) const {
  return {.run = run_, .exchange = id, .kind = kind, .shard = Envelope::kShard, .chunk = 0};
}

void Rpc::move(bool sends, Channel& channel, TagKind kind, std::uint32_t id, transport::MemoryView memory,
               std::function<void()> next) {
  const auto ended = [this, &channel](const transport::Completion& completion) {
    check(channel, completion);
    return !channel.lost;
  };
  move_in_pieces(operations_, {.sends = sends,
                               .peer = channel.peer,
                               .tag = fields(kind, id),
                               .memory = memory,
                               .options = pieces_,
                               .piece_ended = ended,
                               .ended = std::move(next)});
}

OperationQueue::Done Rpc::then(Channel& channel, std::function<void()> next) {
  return [this, &channel, next = std::move(next)](OperationQueue::Ticket, const transport::Completion& completion) {
    check(channel, completion);
    next();  // checks channel.lost itself: its operation has ended in any case
  };
}

void Rpc::check(Channel& channel, const transport::Completion& completion) {
  if (completion.outcome == transport::Outcome::failed) drop(channel, completion.error);
  if (completion.outcome == transport::Outcome::cancelled)
    drop(channel, {Errc::peer_lost, "the connection was closed"});
}

void Rpc::listen(Peer peer) {
  auto& channel = channels_[peer];
  if (channel) throw std::invalid_argument("rpc: listen() was called twice for this peer");
  channel = std::make_unique<Channel>(Channel{.peer = peer});
  receive(*channel);
}

void Rpc::receive(Channel& channel) {
  const transport::MemoryView view{reinterpret_cast<std::byte*>(&channel.received[channel.newest]), sizeof(Envelope),
                                   core::MemorySpace::host};
  operations_.receive(channel.peer, transport::make_tag(fields(TagKind::signal, 0)), view,
                      then(channel, [this, &channel] {
                        if (channel.lost) return;
                        const auto& envelope = channel.received[channel.newest];
                        channel.newest = 1 - channel.newest;
                        receive(channel);
                        handle(channel, envelope);
                      }));
}

void Rpc::send_envelope(Channel& channel, const Envelope& envelope, std::function<void()> next) {
  operations_.send(channel.peer, transport::make_tag(fields(TagKind::signal, 0)),
                   {reinterpret_cast<const std::byte*>(&envelope), sizeof(Envelope)}, then(channel, std::move(next)));
}

void Rpc::handle(Channel& channel, const Envelope& envelope) {
  if (!envelope.plausible(most_floats_)) return drop(channel, {Errc::corrupt, "it sent an invalid envelope"});
  if (envelope.mapped != 0 && !channel.maps)
    return drop(channel, {Errc::corrupt, "it lent a vector in place that this site does not map"});
  if (envelope.type == Type::farewell) {
    channel.farewell_received = true;
    return begin_parting(channel);
  }
  const bool asks = envelope.type == Type::call || envelope.type == Type::offer;
  asks ? serve(channel, envelope) : answered(channel, envelope);
}

// ---- the caller's side

void Rpc::call(Peer peer, Call call, Answered answered) {
  const auto found = channels_.find(peer);
  if (found == channels_.end()) throw std::invalid_argument("rpc: listen() was not called for this peer");
  if (call.header.size() > kMostHeader)
    throw std::invalid_argument(
        fmt::format("rpc: the header has {} bytes, more than {}", call.header.size(), kMostHeader));
  Channel& channel = *found->second;
  auto outgoing = std::make_shared<Outgoing>();
  outgoing->envelope.lend = call.lend;
  outgoing->envelope.half = call.half ? static_cast<std::uint8_t>(*call.half) : Envelope::kNoHalf;
  outgoing->envelope.rounding = call.rounding;
  outgoing->envelope.set(call.header);
  if (call.lend != Lend::nothing) {
    outgoing->slice = {call.vector, call.packing, call.offset};
    outgoing->envelope.floats = outgoing->slice.floats();
    const auto format = outgoing->envelope.format();
    const bool whole = !call.packing && !format.rounds_there() && !format.rounds_back();
    if (channel.lends && whole && !call.vector.empty() && arenas_->contains(call.vector)) {
      outgoing->place = arenas_->place_of(call.vector);
      outgoing->envelope.mapped = outgoing->place.offset % core::kAlignmentFloats == 0 ? 1 : 0;
    }
  }
  if (call.lend != Lend::nothing && outgoing->envelope.mapped == 0) {
    const auto format = outgoing->envelope.format();
    auto room = vectors_.take(caller_floats(outgoing->slice, format));
    if (!room) return answered(tl::unexpected(std::move(room.error())));
    outgoing->room = std::move(*room);
    outgoing->memory = caller_memory(outgoing->room.view(), outgoing->slice, format);
  }
  outgoing->owner = std::move(call.owner);
  outgoing->answered = std::move(answered);
  begin(channel, outgoing);
}

void Rpc::begin(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  const bool waits = channel.calls.size() >= kMostCallsBegun || !channel.not_begun.empty();
  if (waits && !channel.lost) return channel.not_begun.push_back(outgoing);
  send_call(channel, outgoing);
}

void Rpc::send_call(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  while (channel.calls.contains(channel.next_id)) channel.next_id = (channel.next_id + 1) % kIds;
  outgoing->envelope.id = std::exchange(channel.next_id, (channel.next_id + 1) % kIds);
  const auto& envelope = outgoing->envelope;
  outgoing->moves_left = envelope.mapped != 0 ? 1 : (envelope.reads() ? 1U : 0U) + (envelope.writes() ? 1U : 0U);
  outgoing->error = channel.lost;
  channel.calls[outgoing->envelope.id] = outgoing;
  ++outgoing->posted;
  send_envelope(channel, outgoing->envelope, [this, &channel, outgoing] { operation_ended(channel, *outgoing, 0); });
  if (envelope.mapped != 0)
    send_place(channel, outgoing);
  else if (envelope.reads())
    send_vector(channel, outgoing);
  else if (envelope.writes())
    receive_vector(channel, outgoing);
}

void Rpc::send_vector(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  const auto view = encode_request(kernels_, outgoing->envelope.format(), outgoing->slice, outgoing->memory);
  move(true, channel, TagKind::push, outgoing->envelope.id, read_only(view), [this, &channel, outgoing] {
    // The vector's memory sends and receives: the receive is posted after the send has ended.
    if (!channel.lost && outgoing->envelope.writes()) receive_vector(channel, outgoing);
    operation_ended(channel, *outgoing, 1);
  });
}

void Rpc::receive_vector(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  move(false, channel, TagKind::pull, outgoing->envelope.id,
       answer_buffer(kernels_, outgoing->envelope.format(), outgoing->memory),
       [this, &channel, outgoing] { operation_ended(channel, *outgoing, 1); });
}

/// One operation of the call has ended.
void Rpc::operation_ended(Channel& channel, Outgoing& outgoing, std::size_t moves) {
  --outgoing.posted;
  outgoing.moves_left -= moves;
  complete_if_done(channel, outgoing.envelope.id);
}
void Rpc::answered(Channel& channel, const Envelope& envelope) {
  const auto found = channel.calls.find(envelope.id);
  if (found == channel.calls.end() || found->second->answer)
    return drop(channel, {Errc::corrupt, "it answered a call that was not made"});
  if (envelope.rounding == core::Rounding::change && !found->second->envelope.format().returns_change())
    return drop(channel, {Errc::corrupt, "it sent a change where a vector was asked for"});
  found->second->answer = envelope;
  complete_if_done(channel, envelope.id);
}

/// Ends the call when everything has arrived or the channel is lost, but not while an operation borrows the caller's memory.
void Rpc::complete_if_done(Channel& channel, std::uint32_t id) {
  const auto found = channel.calls.find(id);
  if (found == channel.calls.end() || found->second->posted > 0) return;
  if (!channel.lost && (!found->second->answer || found->second->moves_left > 0)) return;
  const auto outgoing = std::move(channel.calls.extract(found).mapped());
  if (!channel.lost && !channel.not_begun.empty()) {
    const auto next = std::move(channel.not_begun.front());
    channel.not_begun.pop_front();
    send_call(channel, next);
  }
  const auto& answer = outgoing->answer;
  if (outgoing->error) return outgoing->answered(tl::unexpected(std::move(*outgoing->error)));
  const bool refused = answer->type == Type::run_error;
  const bool moved = outgoing->envelope.mapped == 0 && outgoing->envelope.writes();
  if (moved && !(refused && outgoing->slice.packing))  // else the vector stays as it is
    decode_answer(kernels_, outgoing->envelope.format(), outgoing->slice, outgoing->memory,
                  answer->rounding == core::Rounding::change);
  if (refused) return outgoing->answered(core::fail(static_cast<Errc>(answer->code), std::string(answer->text())));
  outgoing->answered(answer->text());
}

// ---- the callee's side

void Rpc::serve(Channel& channel, const Envelope& envelope) {
  if (channel.waiting.size() + channel.open - channel.with_memory >= kMostCalls)
    return drop(channel, {Errc::corrupt, fmt::format("it has more than {} calls under way", kMostCalls)});
  channel.waiting.push_back(std::make_shared<ServedCall>(ServedCall{.channel = channel,
                                                                    .envelope = envelope,
                                                                    .format = envelope.format(),
                                                                    .floats_counted = envelope.floats_counted(),
                                                                    .room = {},
                                                                    .memory = {},
                                                                    .whole = {},
                                                                    .slice = {}}));
  hand_over(channel);
}

/// In order, so that the receive of the first waiting vector is always posted.
void Rpc::make_room(Channel& channel) {
  for (; channel.with_memory < channel.waiting.size(); ++channel.with_memory) {
    const auto served = channel.waiting[channel.with_memory];
    const auto& envelope = served->envelope;
    const std::size_t most = kMostVectors * most_floats_;
    if (served->floats_counted > most - std::min(channel.open_floats, most)) return;
    if (envelope.mapped != 0 || envelope.type == Type::offer) {
      ++channel.open;
      if (envelope.mapped != 0)
        receive_place(channel, served);
      else
        served->vector_arrived = true;
      continue;
    }
    auto room = vectors_.take(callee_floats(envelope.floats, served->format));
    if (!room) return drop(channel, room.error());
    served->room = std::move(*room);
    served->memory = callee_memory(served->room.view(), envelope.floats, served->format);
    ++channel.open;
    channel.open_floats += served->floats_counted;
    if (!envelope.reads()) {
      if (!served->memory.dense.empty()) kernels_.fill(served->memory.dense, 0.F);  // a rule may compute with it
      served->vector_arrived = true;
      continue;
    }
    move(false, channel, TagKind::push, envelope.id, request_buffer(kernels_, served->format, served->memory),
         [this, &channel, served] {
           if (channel.lost) return;
           decode_request(kernels_, served->format, served->memory);
           served->vector_arrived = true;
           hand_over(channel);
         });
  }
}

/// Hands over calls whose vectors have arrived, in order. A handler may answer at once and free space for more calls.
void Rpc::hand_over(Channel& channel) {
  if (std::exchange(channel.handing_over, true)) return;
  for (make_room(channel); !channel.lost && !channel.waiting.empty() && channel.waiting.front()->vector_arrived;
       make_room(channel)) {
    const auto served = std::move(channel.waiting.front());
    channel.waiting.pop_front();
    --channel.with_memory;
    if (served->envelope.type == Type::offer) {
      const auto tried = try_arena(channel, served->envelope.text());
      answer(served, tried.map([] { return std::string_view(); }));
      continue;
    }
    if (served->mapping && !*served->mapping) {
      answer(served, tl::unexpected(served->mapping->error()));
      continue;
    }
    handler_({.from = channel.peer,
              .header = served->envelope.text(),
              .lend = served->envelope.lend,
              .vector = served->mapping ? (*served->mapping)->view() : served->memory.dense,
              .reply = Reply(*this, served)});
  }
  channel.handing_over = false;
}

void Rpc::free_room(Channel& channel, ServedCall& served) {
  served.room = {};
  served.whole = {};
  --channel.open;
  channel.open_floats -= served.floats_counted;
  if (!channel.lost) hand_over(channel);
}

void Rpc::Reply::operator()(core::Result<std::string_view> result) const { rpc_->answer(served_, std::move(result)); }

core::Result<core::Span> Rpc::Incoming::padded(const Packing& packing, std::size_t offset, std::size_t floats) const {
  auto& served = *reply.served_;
  auto whole = reply.rpc_->vectors_.take(floats);
  if (!whole) return tl::unexpected(std::move(whole.error()));
  served.whole = std::move(*whole);
  served.slice = {served.whole.view(), &packing, offset};
  if (!served.envelope.reads()) {
    std::ranges::fill(served.slice.vector, 0.F);
    return served.slice.vector;
  }
  packing.clear_padding(offset, served.slice.vector);
  packing.unpack(served.memory.dense, offset, served.slice.vector);
  return served.slice.vector;
}

void Rpc::answer(const std::shared_ptr<ServedCall>& served, core::Result<std::string_view> result) {
  auto& channel = served->channel;
  if (std::exchange(served->replied, true)) throw std::invalid_argument("rpc: a call was answered twice");
  served->mapping.reset();  // its owner may end before the answer has arrived
  if (channel.lost) return;
  const bool writes = served->envelope.writes() && served->envelope.mapped == 0;
  // Unsent answers count as calls: a peer that takes no answers must not make more of them wait than kMostCalls.
  served->sends_left = writes ? 2 : 1;
  const auto sent = [this, &channel, served] {
    if (--served->sends_left == 0) free_room(channel, *served);
  };
  Envelope envelope{.type = result ? Type::answer : Type::run_error, .id = served->envelope.id};
  if (!result) envelope.code = static_cast<std::uint8_t>(result.error().code);
  envelope.set(result ? *result : std::string_view(result.error().message));
  // The caller waits for its vector after an error too.
  if (writes) {
    if (result && served->slice.packing)
      served->slice.packing->pack(served->slice.vector, served->slice.offset, served->memory.dense);
    const auto [view, as_change] = encode_answer(kernels_, served->format, served->memory);
    if (as_change) envelope.rounding = core::Rounding::change;
    move(true, channel, TagKind::pull, envelope.id, read_only(view), sent);
  }
  served->envelope = envelope;  // the view of the call's header ends here
  send_envelope(channel, served->envelope, sent);
  advance_farewell(channel);
}

void Rpc::drop(Channel& channel, const core::Error& error) {
  if (channel.lost) return;
  channel.lost = error;
  channel.lends = channel.maps = false;
  if (arenas_) arenas_->forget(channel.peer);
  channel.waiting.clear();
  channel.with_memory = 0;
  endpoint_.disconnect(channel.peer, error.message);  // ends the peer's other operations
  std::vector<std::uint32_t> open;
  for (auto& [id, outgoing] : channel.calls) {
    outgoing->error = error;
    open.push_back(id);
  }
  for (const auto id : open) complete_if_done(channel, id);
  for (const auto& outgoing : std::exchange(channel.not_begun, {})) outgoing->answered(tl::unexpected(error));
  lost_(channel.peer, error);
}

}  // namespace troupe::exchange
