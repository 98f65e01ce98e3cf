#include "transport/exchange/calls.hpp"

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

constexpr std::uint32_t kIds = 1U << 24;  // as many as a tag tells apart
using Type = Envelope::Type;

}  // namespace

struct Calls::Outgoing {
  Envelope envelope;
  OnWire wire;
  Answered answered;
  std::size_t moves_left = 0;                         // of the vector, to the callee and back
  std::size_t posted = 0;                             // operations that have not ended: they have the caller's memory
  std::optional<core::Result<std::string>> answer{};  // or what the line was lost by
  bool as_change = false;                             // the vector that came back is one
};

struct Calls::Serving {
  Envelope envelope;
  core::Buffer buffer;  // the vector, and behind it what it was when it came, where its change goes back
  OnWire wire;
  bool here = false;  // whole: what the caller lends has come
  bool replied = false;
  int sends_left = 0;  // of the answer
  [[nodiscard]] core::Span vector() { return buffer.view().first(envelope.floats); }
};

/// One peer.
struct Calls::Line {
  Peer peer{};
  std::optional<core::Error> lost{};
  std::uint32_t next_id = 0;
  Envelope heard{};
  std::map<std::uint32_t, std::shared_ptr<Outgoing>> calls{};
  // Of the peer, in its order; the first `placed` of them have their memory.
  std::deque<std::shared_ptr<Serving>> waiting{};
  std::size_t placed = 0;
  std::size_t open = 0;         // of the peer, with memory: their answers have not been taken
  std::size_t open_floats = 0;  // of their vectors
  bool handing_over = false;
};

Calls::Calls(transport::Endpoint& endpoint, Courier& courier, const core::Kernels& kernels, core::Allocator& memory,
             std::size_t most_floats, std::uint8_t run, Handler handler, Lost lost)
    : endpoint_(endpoint),
      courier_(courier),
      kernels_(kernels),
      memory_(memory),
      most_floats_(most_floats),
      run_(run),
      handler_(std::move(handler)),
      lost_(std::move(lost)) {}
Calls::~Calls() = default;

transport::Tag Calls::tag(TagKind kind, std::uint32_t id) const {
  return transport::make_tag({.run = run_, .exchange = id, .kind = kind, .shard = Envelope::kShard, .chunk = 0});
}

Courier::Done Calls::then(Line& line, std::function<void()> next) {
  return [this, &line, next = std::move(next)](Courier::Ticket, const transport::Completion& completion) {
    if (completion.outcome == transport::Outcome::failed) drop(line, completion.error);
    if (completion.outcome == transport::Outcome::cancelled) drop(line, {Errc::peer_lost, "the connection was closed"});
    next();  // looks whether the line is lost: what it has in hand has ended in any case
  };
}

void Calls::listen(Peer peer) {
  auto& line = lines_[peer];
  if (line) throw std::invalid_argument("calls: this peer is listened to already");
  line = std::make_unique<Line>(Line{.peer = peer});
  hear(*line);
}

void Calls::hear(Line& line) {
  const transport::MemoryView view{reinterpret_cast<std::byte*>(&line.heard), sizeof(Envelope),
                                   core::MemorySpace::host};
  courier_.receive(line.peer, tag(TagKind::signal, 0), view, then(line, [this, &line] {
                     if (line.lost) return;
                     const Envelope envelope = line.heard;
                     hear(line);
                     handle(line, envelope);
                   }));
}

void Calls::send_envelope(Line& line, const Envelope& envelope, std::function<void()> next) {
  const auto copy = std::make_shared<const Envelope>(envelope);
  courier_.send(line.peer, tag(TagKind::signal, 0), {reinterpret_cast<const std::byte*>(copy.get()), sizeof(Envelope)},
                then(line, [copy, next = std::move(next)] { next(); }));
}

void Calls::handle(Line& line, const Envelope& envelope) {
  if (!envelope.plausible(most_floats_)) return drop(line, {Errc::corrupt, "it sent an envelope that makes no sense"});
  envelope.type == Type::call ? serve(line, envelope) : answered(line, envelope);
}

// ---- the caller's side

void Calls::call(Peer peer, Call call, Answered answered) {
  const auto found = lines_.find(peer);
  if (found == lines_.end() || call.header.size() > kMostHeader)
    throw std::invalid_argument("calls: nobody listens to this peer, or the header is too long");
  Line& line = *found->second;
  auto outgoing = std::make_shared<Outgoing>();
  outgoing->envelope.lend = call.lend;
  outgoing->envelope.half = call.half ? static_cast<std::uint8_t>(*call.half) : Envelope::kNoHalf;
  outgoing->envelope.rounding = call.rounding;
  outgoing->envelope.floats = call.lend == Lend::nothing ? 0 : call.vector.size();
  outgoing->envelope.set(call.header);
  outgoing->wire = OnWire(call.vector, call.half, call.rounding);
  outgoing->answered = std::move(answered);
  while (line.calls.contains(line.next_id)) line.next_id = (line.next_id + 1) % kIds;
  outgoing->envelope.id = std::exchange(line.next_id, (line.next_id + 1) % kIds);
  outgoing->moves_left = (outgoing->envelope.reads() ? 1U : 0U) + (outgoing->envelope.writes() ? 1U : 0U);
  if (line.lost) outgoing->answer = tl::unexpected(*line.lost);
  line.calls[outgoing->envelope.id] = outgoing;
  ++outgoing->posted;
  send_envelope(line, outgoing->envelope, [this, &line, outgoing] { moved(line, *outgoing, 0); });
  if (outgoing->envelope.reads())
    give(line, outgoing);
  else if (outgoing->envelope.writes())
    take(line, outgoing);
}

void Calls::give(Line& line, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  courier_.send(line.peer, tag(TagKind::push, outgoing->envelope.id), outgoing->wire.going(kernels_),
                then(line, [this, &line, outgoing] {
                  // The same memory goes and comes: what comes is asked for when what goes has gone.
                  if (!line.lost && outgoing->envelope.writes()) take(line, outgoing);
                  moved(line, *outgoing, 1);
                }));
}

void Calls::take(Line& line, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  courier_.receive(line.peer, tag(TagKind::pull, outgoing->envelope.id), outgoing->wire.room_for_answer(),
                   then(line, [this, &line, outgoing] { moved(line, *outgoing, 1); }));
}

/// An operation of the call has ended.
void Calls::moved(Line& line, Outgoing& outgoing, std::size_t moves) {
  --outgoing.posted;
  outgoing.moves_left -= moves;
  settle(line, outgoing.envelope.id);
}
void Calls::answered(Line& line, const Envelope& envelope) {
  const auto found = line.calls.find(envelope.id);
  if (found == line.calls.end() || found->second->answer)
    return drop(line, {Errc::corrupt, "it answered a call that nobody had made"});
  auto& outgoing = *found->second;
  outgoing.as_change = envelope.rounding == core::Rounding::change;
  if (envelope.type == Type::trouble) {
    outgoing.answer = core::fail(static_cast<Errc>(envelope.code), envelope.text());
  } else {
    outgoing.answer = envelope.text();
  }
  settle(line, envelope.id);
}

/// Ends the call when all has come, or the line was lost; not while an operation has the caller's memory.
void Calls::settle(Line& line, std::uint32_t id) {
  const auto found = line.calls.find(id);
  if (found == line.calls.end() || !found->second->answer || found->second->posted > 0) return;
  if (!line.lost && found->second->moves_left > 0) return;
  const auto outgoing = std::move(line.calls.extract(found).mapped());
  if (!line.lost && outgoing->envelope.writes()) outgoing->wire.take_answer(kernels_, outgoing->as_change);
  outgoing->answered(*std::move(outgoing->answer));
}

// ---- the callee's side

void Calls::serve(Line& line, const Envelope& envelope) {
  if (line.waiting.size() + line.open - line.placed >= kMostCalls)
    return drop(line, {Errc::corrupt, fmt::format("it has more than {} calls under way", kMostCalls)});
  line.waiting.push_back(std::make_shared<Serving>(Serving{.envelope = envelope, .buffer = {}, .wire = {}}));
  hand_over(line);
}

/// In order, so that the vector of the first that waits is always asked for.
void Calls::make_room(Line& line) {
  for (; line.placed < line.waiting.size(); ++line.placed) {
    const auto serving = line.waiting[line.placed];
    const auto& envelope = serving->envelope;
    const std::size_t most = kMostVectors * most_floats_;
    if (envelope.floats_counted() > most - std::min(line.open_floats, most)) return;
    auto buffer = core::Buffer::allocate(memory_, envelope.floats_held());
    if (!buffer) return drop(line, buffer.error());
    serving->buffer = std::move(*buffer);
    serving->wire = OnWire(serving->vector(), envelope.wire(), envelope.rounding,
                           serving->buffer.view().last(envelope.returns_change() ? envelope.floats : 0));
    ++line.open;
    line.open_floats += envelope.floats_counted();
    if (!envelope.reads()) {
      serving->here = true;
      continue;
    }
    courier_.receive(line.peer, tag(TagKind::push, envelope.id), serving->wire.room(),
                     then(line, [this, &line, serving] {
                       if (line.lost) return;
                       serving->wire.take(kernels_);
                       serving->here = true;
                       hand_over(line);
                     }));
  }
}

/// Those whose vectors have come, as far as none is missing before them. A handler may answer at once, and free room for more.
void Calls::hand_over(Line& line) {
  if (std::exchange(line.handing_over, true)) return;
  for (make_room(line); !line.lost && !line.waiting.empty() && line.waiting.front()->here; make_room(line)) {
    const auto serving = std::move(line.waiting.front());
    line.waiting.pop_front();
    --line.placed;
    handler_({line.peer, serving->envelope.text(), serving->envelope.lend, serving->vector(),
              [this, &line, serving](core::Result<std::string> result) { answer(line, serving, std::move(result)); }});
  }
  line.handing_over = false;
}

void Calls::free_room(Line& line, const Serving& serving) {
  --line.open;
  line.open_floats -= serving.envelope.floats_counted();
  if (!line.lost) hand_over(line);
}

void Calls::answer(Line& line, const std::shared_ptr<Serving>& serving, core::Result<std::string> result) {
  if (std::exchange(serving->replied, true)) throw std::invalid_argument("calls: answered twice");
  if (line.lost) return;
  // A peer that does not take its answers must not make more of them wait here than it may have calls.
  serving->sends_left = serving->envelope.writes() ? 2 : 1;
  const auto sent = [this, &line, serving] {
    if (--serving->sends_left == 0) free_room(line, *serving);
  };
  Envelope envelope{.type = result ? Type::answer : Type::trouble, .id = serving->envelope.id};
  // The caller waits for its vector also where something went wrong.
  if (serving->envelope.writes()) {
    const auto [view, as_change] = serving->wire.answer(kernels_);
    if (as_change) envelope.rounding = core::Rounding::change;
    courier_.send(line.peer, tag(TagKind::pull, serving->envelope.id), view, then(line, sent));
  }
  if (!result) envelope.code = static_cast<std::uint8_t>(result.error().code);
  envelope.set(result ? *result : result.error().message);
  send_envelope(line, envelope, sent);
}

void Calls::drop(Line& line, const core::Error& error) {
  if (line.lost) return;
  line.lost = error;
  line.waiting.clear();
  line.placed = 0;
  endpoint_.disconnect(line.peer, error.message);  // the rest of its operations ends too
  std::vector<std::uint32_t> open;
  for (auto& [id, outgoing] : line.calls) {
    outgoing->answer = tl::unexpected(error);
    open.push_back(id);
  }
  for (const auto id : open) settle(line, id);
  lost_(line.peer, error);
}

}  // namespace troupe::exchange
