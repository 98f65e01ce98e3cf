/// Reads along what two processes say to each other in CAF's protocol, both ways, and says when to hang up. CAF 0.17 hands a message to any
/// actor whose number stands in it, believes whoever claims to be a node, and reads any type there is; here a peer
///
///   is the node that it says it is, as far as certificates tell (peers.hpp),
///   speaks for itself: nothing is routed, and nobody else's actors end,
///   speaks to actors that have been introduced to it: those that are published, and those that a message to it has named,
///   says what members say (accepted_messages.hpp), in messages that are well formed and name actors of its own,
///   answers what it has been asked, once.
///
/// What it says in such messages is the actors' to judge. Thread rule: CAF's I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/control/frame_guard.hpp"
#include "actors/control/accepted_messages.hpp"
#include "actors/control/peers.hpp"

namespace troupe::actors {

class WireConversation {
 public:
  WireConversation(security::TlsSide side, std::shared_ptr<WirePeers> peers, std::string certificate);

  /// What is wrong with what has come, these bytes included; nothing: all is well so far. Not to be called after that.
  [[nodiscard]] std::optional<std::string_view> heard(std::span<const char> bytes);
  /// These bytes have left.
  void said(std::span<const char> bytes);
  /// The other end's handshake is there, in full.
  [[nodiscard]] bool greeted() const noexcept { return guard_.greeted(); }

 private:
  using Refusal = std::optional<std::string_view>;
  /// One message of the protocol.
  struct Frame {
    std::string header;
    std::string payload;
    [[nodiscard]] std::uint8_t type() const { return static_cast<std::uint8_t>(header[0]); }
    [[nodiscard]] std::uint8_t flags() const { return static_cast<std::uint8_t>(header[3]); }
    [[nodiscard]] std::size_t length() const { return number(4, 4); }
    [[nodiscard]] std::uint64_t id() const { return number(8, 8); }
    [[nodiscard]] caf::actor_id source() const { return number(16, 8); }
    [[nodiscard]] caf::actor_id destination() const { return number(24, 8); }
    [[nodiscard]] bool complete() const {
      return header.size() == WireGuard::kHeaderBytes && payload.size() == length();
    }
    [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t size) const;
  };
  /// Adds `bytes` to `frame`; `whole` looks at it when it is complete, and what it says ends that.
  static Refusal collect(Frame& frame, std::span<const char> bytes, const std::function<Refusal()>& whole);

  Refusal judge();
  Refusal greeting();
  Refusal message();
  Refusal monitor(bool down);
  [[nodiscard]] bool knows(caf::actor_id actor) const;
  void note();

  WireGuard guard_;
  const std::shared_ptr<WirePeers> peers_;
  const std::string certificate_;
  std::shared_ptr<WirePeer> peer_;  // from its handshake on
  std::string node_;                // that it is
  Frame in_;
  Frame out_;
};

}  // namespace troupe::actors
