#include "actors/control/conversation.hpp"

#include <algorithm>
#include <utility>

#include <caf/io/basp/header.hpp>
#include <fmt/format.h>

namespace troupe::actors {

using caf::io::basp::message_type;

namespace {

constexpr std::string_view kNotItself = "it sends on behalf of another node";
constexpr std::string_view kNobodyElses = "it claims the node id of another process";
constexpr std::string_view kNoMessage = "it sent a message that is not part of the protocol";

// The bounds of a peer, as text.
const std::string kTooManyActors = fmt::format("it uses more than {} actors", ControlPeer::kMostActors);
const std::string kTooManyAnswers = fmt::format("it has more than {} unread answers", ControlPeer::kMostRequests);
const std::string kTooManyWatches = fmt::format("it monitors one actor more than {} times", ControlPeer::kMostWatches);

/// CAF sends to the first when it meets a node, and to the second on request. No actor here has these names (network.cpp): CAF drops such
/// messages unread.
bool is_nobody(caf::actor_id name) {
  return name == static_cast<std::uint64_t>(caf::atom("SpawnServ")) ||
         name == static_cast<std::uint64_t>(caf::atom("ConfigServ"));
}

MessageUse use_of(const caf::message_id& id) {
  return id.is_response() ? MessageUse::response : id.is_request() ? MessageUse::request : MessageUse::notification;
}

}  // namespace

std::uint64_t Conversation::Frame::number(std::size_t at, std::size_t size) const {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<std::uint8_t>(header[i]);
  return value;
}

Conversation::Conversation(security::TlsSide side, std::shared_ptr<ControlPeers> peers, std::string certificate)
    : guard_(side), peers_(std::move(peers)), certificate_(std::move(certificate)) {}

Conversation::Violation Conversation::collect(Frame& frame, std::span<const char> bytes,
                                              const std::function<Violation()>& whole) {
  while (!bytes.empty()) {
    auto& part = frame.header.size() < FrameGuard::kHeaderBytes ? frame.header : frame.payload;
    const auto missing = &part == &frame.header ? FrameGuard::kHeaderBytes - part.size() : frame.length() - part.size();
    const auto taken = std::min(missing, bytes.size());
    part.append(bytes.data(), taken);
    bytes = bytes.subspan(taken);
    if (!frame.complete()) continue;
    if (const auto refusal = whole()) return refusal;
    frame.header.clear();
    frame.payload.clear();
    if (frame.payload.capacity() > FrameGuard::kHandshakeBytes) frame.payload = {};  // frees a rare long buffer
  }
  return {};
}

std::optional<std::string_view> Conversation::received(std::span<const char> bytes) {
  if (const auto wrong = guard_.watch(bytes)) return wrong;
  return collect(in_, bytes, [this] { return judge(); });
}

void Conversation::sent(std::span<const char> bytes) {
  (void)collect(out_, bytes, [this] {
    note();
    return Violation{};
  });
}

Conversation::Violation Conversation::judge() {
  switch (static_cast<message_type>(in_.type())) {
    case message_type::server_handshake:
    case message_type::client_handshake: return handshake();
    case message_type::heartbeat: return {};
    default: break;
  }
  if (!peer_) return kNobodyElses;
  switch (static_cast<message_type>(in_.type())) {
    case message_type::direct_message: return message();
    case message_type::monitor_message: return monitor(false);
    case message_type::down_message: return monitor(true);
    default: return kNotItself;  // routed: for or from another node
  }
}

Conversation::Violation Conversation::handshake() {
  ValueReader reader(in_.payload);
  std::string node;
  if (!reader.node(node)) return "invalid handshake";
  if (peer_) return node == node_ ? Violation{} : Violation(kNobodyElses);
  peer_ = peers_->claim(node, certificate_);
  // CAF itself detects a connection to its own process, and ends it.
  if (!peer_ && node != peers_->own()) return kNobodyElses;
  node_ = std::move(node);
  return {};
}

Conversation::Violation Conversation::message() {
  using caf::io::basp::header;
  const caf::message_id id(in_.id());
  if (in_.flags() == header::named_receiver_flag)
    return is_nobody(in_.destination()) ? Violation{} : Violation(kNoMessage);
  // A response without source: CAF itself answers a request to an actor that has ended.
  if (in_.source() == 0 && !id.is_response()) return kNoMessage;
  if (in_.source() != 0) peer_->actors.insert(in_.source());
  if (peer_->actors.size() > ControlPeer::kMostActors) return kTooManyActors;
  if (id.is_request() && ++peer_->requests > ControlPeer::kMostRequests) return kTooManyAnswers;
  if (in_.flags() != 0 || id.is_stream_message()) return kNoMessage;
  ValueReader reader(in_.payload);
  std::size_t stages = 0;
  std::vector<RemoteHandle> actors;
  const auto use = use_of(id);
  if (!reader.length(stages) || stages > 0 || !is_wire_message(reader, use, actors)) return kNoMessage;
  const bool its_own =
      std::ranges::all_of(actors, [this](const RemoteHandle& actor) { return actor.id == 0 || actor.node == node_; });
  if (!its_own) return kNotItself;
  for (const auto& actor : actors)
    if (actor.id != 0) peer_->actors.insert(actor.id);
  if (id.is_response())
    return peer_->expected.erase({in_.destination(), id.integer_value() & caf::message_id::request_id_mask}) == 0
               ? Violation("it answers a request that was not made")
               : Violation{};
  return knows(in_.destination()) ? Violation{} : Violation("it sends to an actor that it was not given");
}

/// `down`: an actor of the peer has ended. Otherwise the peer monitors an actor of this process.
Conversation::Violation Conversation::monitor(bool down) {
  ValueReader reader(in_.payload);
  std::string from, to;
  if (!reader.node(from) || !reader.node(to) || (down && !reader.plain_error()) || !reader.at_end())
    return "invalid message about an actor";
  if (from != node_ || to != peers_->own()) return kNotItself;
  if (down) {
    peer_->actors.erase(in_.source());
    return {};
  }
  const auto watched = peer_->watched.find(in_.destination());
  if (watched == peer_->watched.end() && !knows(in_.destination())) return "it monitors an actor that it was not given";
  return ++peer_->watched[in_.destination()] <= ControlPeer::kMostWatches ? Violation{} : Violation(kTooManyWatches);
}

bool Conversation::knows(caf::actor_id actor) const {
  return peer_->introduced.contains(actor) || peers_->is_published(actor);
}

/// Notes what a sent frame allows the peer: published actors, introduced actors, expected answers.
void Conversation::note() {
  ValueReader reader(out_.payload);
  std::string text;
  switch (static_cast<message_type>(out_.type())) {
    case message_type::server_handshake: {
      std::size_t applications = 0;
      bool read = reader.node(text) && reader.length(applications);
      for (std::size_t k = 0; read && k < applications; ++k) read = reader.text(text);
      std::uint64_t published = 0;
      if (read && reader.number(published) && published != 0) peers_->publish(published);
      return;
    }
    case message_type::direct_message: break;
    default: return;
  }
  if (!peer_) return;
  const caf::message_id id(out_.id());
  peer_->watched.try_emplace(out_.source());
  if (id.is_response() && peer_->requests > 0) --peer_->requests;
  if (id.is_request()) peer_->expected.emplace(out_.source(), id.integer_value() & caf::message_id::request_id_mask);
  std::size_t stages = 0;
  std::vector<RemoteHandle> actors;
  const auto use = use_of(id);
  if (!reader.length(stages) || stages > 0 || !is_wire_message(reader, use, actors)) return;
  for (const auto& actor : actors)
    if (actor.id != 0 && actor.node == peers_->own()) peer_->introduced.insert(actor.id);
}

}  // namespace troupe::actors
