#include "transport/exchange/rpc.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "transport/exchange/envelope.hpp"
#include "transport/exchange/on_wire.hpp"

namespace troupe::exchange {

using core::Errc;
using transport::Peer;
using transport::TagKind;

namespace {

constexpr std::uint32_t kIds = 1U << 24;  // as many as a tag can number
using Type = Envelope::Type;

}  // namespace

struct Rpc::Outgoing {
  Envelope envelope;
  OnWire wire;
  Answered answered;
  std::size_t moves_left = 0;                         // of the vector, to the callee and back
  std::size_t posted = 0;                             // operations that have not ended: they borrow the caller's memory
  std::optional<core::Result<std::string>> answer{};  // or the error that ended the channel
  bool as_change = false;                             // the returned vector is a change
};

struct Rpc::Serving {
  Envelope envelope;
  core::Buffer buffer;  // the vector; behind it its received values, if its change is sent back
  OnWire wire;
  bool here = false;  // the whole vector has arrived
  bool replied = false;
  int sends_left = 0;  // of the answer
  [[nodiscard]] core::Span vector() { return buffer.view().first(envelope.floats); }
};

/// The calls from and to one peer.
struct Rpc::Channel {
  Peer peer{};
  std::optional<core::Error> lost{};
  std::uint32_t next_id = 0;
  Envelope heard{};
  std::map<std::uint32_t, std::shared_ptr<Outgoing>> calls{};
  // Received calls, in the peer's order; the first `placed` have their memory.
  std::deque<std::shared_ptr<Serving>> waiting{};
  std::size_t placed = 0;
  std::size_t open = 0;         // received calls with memory whose answers are not sent yet
  std::size_t open_floats = 0;  // floats of their vectors
  bool handing_over = false;
};

Rpc::Rpc(transport::Endpoint& endpoint, OperationQueue& operations, const core::Kernels& kernels,
         core::Allocator& memory, std::size_t most_floats, std::uint8_t run, Handler handler, Lost lost)
    : endpoint_(endpoint),
      operations_(operations),
      kernels_(kernels),
      memory_(memory),
      most_floats_(most_floats),
      run_(run),
      handler_(std::move(handler)),
      lost_(std::move(lost)) {}
Rpc::~Rpc() = default;

transport::Tag Rpc::tag(TagKind kind, std::uint32_t id) const {
  return transport::make_tag({.run = run_, .exchange = id, .kind = kind, .shard = Envelope::kShard, .chunk = 0});
}

OperationQueue::Done Rpc::then(Channel& channel, std::function<void()> next) {
  return [this, &channel, next = std::move(next)](OperationQueue::Ticket, const transport::Completion& completion) {
    if (completion.outcome == transport::Outcome::failed) drop(channel, completion.error);
    if (completion.outcome == transport::Outcome::cancelled)
      drop(channel, {Errc::peer_lost, "the connection was closed"});
    next();  // checks channel.lost itself: its operation has ended in any case
  };
}

void Rpc::listen(Peer peer) {
  auto& channel = channels_[peer];
  if (channel) throw std::invalid_argument("calls: this peer is listened to already");
  channel = std::make_unique<Channel>(Channel{.peer = peer});
  hear(*channel);
}

void Rpc::hear(Channel& channel) {
  const transport::MemoryView view{reinterpret_cast<std::byte*>(&channel.heard), sizeof(Envelope),
                                   core::MemorySpace::host};
  operations_.receive(channel.peer, tag(TagKind::signal, 0), view, then(channel, [this, &channel] {
                        if (channel.lost) return;
                        const Envelope envelope = channel.heard;
                        hear(channel);
                        handle(channel, envelope);
                      }));
}

void Rpc::send_envelope(Channel& channel, const Envelope& envelope, std::function<void()> next) {
  const auto copy = std::make_shared<const Envelope>(envelope);
  operations_.send(channel.peer, tag(TagKind::signal, 0),
                   {reinterpret_cast<const std::byte*>(copy.get()), sizeof(Envelope)},
                   then(channel, [copy, next = std::move(next)] { next(); }));
}

void Rpc::handle(Channel& channel, const Envelope& envelope) {
  if (!envelope.plausible(most_floats_)) return drop(channel, {Errc::corrupt, "it sent an invalid envelope"});
  envelope.type == Type::call ? serve(channel, envelope) : answered(channel, envelope);
}

// ---- the caller's side

void Rpc::call(Peer peer, Call call, Answered answered) {
  const auto found = channels_.find(peer);
  if (found == channels_.end() || call.header.size() > kMostHeader)
    throw std::invalid_argument("rpc: this peer is not listened to, or the header is too long");
  Channel& channel = *found->second;
  auto outgoing = std::make_shared<Outgoing>();
  outgoing->envelope.lend = call.lend;
  outgoing->envelope.half = call.half ? static_cast<std::uint8_t>(*call.half) : Envelope::kNoHalf;
  outgoing->envelope.rounding = call.rounding;
  outgoing->envelope.floats = call.lend == Lend::nothing ? 0 : call.vector.size();
  outgoing->envelope.set(call.header);
  outgoing->wire = OnWire(call.vector, call.half, call.rounding);
  outgoing->answered = std::move(answered);
  while (channel.calls.contains(channel.next_id)) channel.next_id = (channel.next_id + 1) % kIds;
  outgoing->envelope.id = std::exchange(channel.next_id, (channel.next_id + 1) % kIds);
  outgoing->moves_left = (outgoing->envelope.reads() ? 1U : 0U) + (outgoing->envelope.writes() ? 1U : 0U);
  if (channel.lost) outgoing->answer = tl::unexpected(*channel.lost);
  channel.calls[outgoing->envelope.id] = outgoing;
  ++outgoing->posted;
  send_envelope(channel, outgoing->envelope, [this, &channel, outgoing] { moved(channel, *outgoing, 0); });
  if (outgoing->envelope.reads())
    give(channel, outgoing);
  else if (outgoing->envelope.writes())
    take(channel, outgoing);
}

void Rpc::give(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  operations_.send(channel.peer, tag(TagKind::push, outgoing->envelope.id), outgoing->wire.going(kernels_),
                   then(channel, [this, &channel, outgoing] {
                     // The vector's memory sends and receives: the receive is posted after the send has ended.
                     if (!channel.lost && outgoing->envelope.writes()) take(channel, outgoing);
                     moved(channel, *outgoing, 1);
                   }));
}

void Rpc::take(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  operations_.receive(channel.peer, tag(TagKind::pull, outgoing->envelope.id), outgoing->wire.room_for_answer(),
                      then(channel, [this, &channel, outgoing] { moved(channel, *outgoing, 1); }));
}

/// One operation of the call has ended.
void Rpc::moved(Channel& channel, Outgoing& outgoing, std::size_t moves) {
  --outgoing.posted;
  outgoing.moves_left -= moves;
  settle(channel, outgoing.envelope.id);
}
void Rpc::answered(Channel& channel, const Envelope& envelope) {
  const auto found = channel.calls.find(envelope.id);
  if (found == channel.calls.end() || found->second->answer)
    return drop(channel, {Errc::corrupt, "it answered a call that was not made"});
  auto& outgoing = *found->second;
  outgoing.as_change = envelope.rounding == core::Rounding::change;
  if (envelope.type == Type::run_error) {
    outgoing.answer = core::fail(static_cast<Errc>(envelope.code), envelope.text());
  } else {
    outgoing.answer = envelope.text();
  }
  settle(channel, envelope.id);
}

/// Ends the call when everything has arrived or the channel is lost, but not while an operation borrows the caller's memory.
void Rpc::settle(Channel& channel, std::uint32_t id) {
  const auto found = channel.calls.find(id);
  if (found == channel.calls.end() || !found->second->answer || found->second->posted > 0) return;
  if (!channel.lost && found->second->moves_left > 0) return;
  const auto outgoing = std::move(channel.calls.extract(found).mapped());
  if (!channel.lost && outgoing->envelope.writes()) outgoing->wire.take_answer(kernels_, outgoing->as_change);
  outgoing->answered(*std::move(outgoing->answer));
}

// ---- the callee's side

void Rpc::serve(Channel& channel, const Envelope& envelope) {
  if (channel.waiting.size() + channel.open - channel.placed >= kMostCalls)
    return drop(channel, {Errc::corrupt, fmt::format("it has more than {} calls under way", kMostCalls)});
  channel.waiting.push_back(std::make_shared<Serving>(Serving{.envelope = envelope, .buffer = {}, .wire = {}}));
  hand_over(channel);
}

/// In order, so that the receive of the first waiting vector is always posted.
void Rpc::make_room(Channel& channel) {
  for (; channel.placed < channel.waiting.size(); ++channel.placed) {
    const auto serving = channel.waiting[channel.placed];
    const auto& envelope = serving->envelope;
    const std::size_t most = kMostVectors * most_floats_;
    if (envelope.floats_counted() > most - std::min(channel.open_floats, most)) return;
    auto buffer = core::Buffer::allocate(memory_, envelope.floats_held());
    if (!buffer) return drop(channel, buffer.error());
    serving->buffer = std::move(*buffer);
    serving->wire = OnWire(serving->vector(), envelope.wire(), envelope.rounding,
                           serving->buffer.view().last(envelope.returns_change() ? envelope.floats : 0));
    ++channel.open;
    channel.open_floats += envelope.floats_counted();
    if (!envelope.reads()) {
      serving->here = true;
      continue;
    }
    operations_.receive(channel.peer, tag(TagKind::push, envelope.id), serving->wire.room(),
                        then(channel, [this, &channel, serving] {
                          if (channel.lost) return;
                          serving->wire.take(kernels_);
                          serving->here = true;
                          hand_over(channel);
                        }));
  }
}

/// Hands over calls whose vectors have arrived, in order. A handler may answer at once and free space for more calls.
void Rpc::hand_over(Channel& channel) {
  if (std::exchange(channel.handing_over, true)) return;
  for (make_room(channel); !channel.lost && !channel.waiting.empty() && channel.waiting.front()->here;
       make_room(channel)) {
    const auto serving = std::move(channel.waiting.front());
    channel.waiting.pop_front();
    --channel.placed;
    handler_(
        {channel.peer, serving->envelope.text(), serving->envelope.lend, serving->vector(),
         [this, &channel, serving](core::Result<std::string> result) { answer(channel, serving, std::move(result)); }});
  }
  channel.handing_over = false;
}

void Rpc::free_room(Channel& channel, const Serving& serving) {
  --channel.open;
  channel.open_floats -= serving.envelope.floats_counted();
  if (!channel.lost) hand_over(channel);
}

void Rpc::answer(Channel& channel, const std::shared_ptr<Serving>& serving, core::Result<std::string> result) {
  if (std::exchange(serving->replied, true)) throw std::invalid_argument("calls: answered twice");
  if (channel.lost) return;
  // Unsent answers count as calls: a peer that takes no answers must not make more of them wait than kMostCalls.
  serving->sends_left = serving->envelope.writes() ? 2 : 1;
  const auto sent = [this, &channel, serving] {
    if (--serving->sends_left == 0) free_room(channel, *serving);
  };
  Envelope envelope{.type = result ? Type::answer : Type::run_error, .id = serving->envelope.id};
  // The caller waits for its vector after an error too.
  if (serving->envelope.writes()) {
    const auto [view, as_change] = serving->wire.answer(kernels_);
    if (as_change) envelope.rounding = core::Rounding::change;
    operations_.send(channel.peer, tag(TagKind::pull, serving->envelope.id), view, then(channel, sent));
  }
  if (!result) envelope.code = static_cast<std::uint8_t>(result.error().code);
  envelope.set(result ? *result : result.error().message);
  send_envelope(channel, envelope, sent);
}

void Rpc::drop(Channel& channel, const core::Error& error) {
  if (channel.lost) return;
  channel.lost = error;
  channel.waiting.clear();
  channel.placed = 0;
  endpoint_.disconnect(channel.peer, error.message);  // ends the peer's other operations
  std::vector<std::uint32_t> open;
  for (auto& [id, outgoing] : channel.calls) {
    outgoing->answer = tl::unexpected(error);
    open.push_back(id);
  }
  for (const auto id : open) settle(channel, id);
  lost_(channel.peer, error);
}

}  // namespace troupe::exchange
