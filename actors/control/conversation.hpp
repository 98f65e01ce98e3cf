/// Checks the bytes of one connection in CAF's protocol, both ways, and reports when the connection must end. CAF 0.17 delivers a message
/// to any actor whose number the message holds, accepts any claimed node id, and reads any type. These rules hold for a peer:
///
///   It is the node that it claims to be: the node id belongs to the peer's certificate (peers.hpp).
///   It sends for itself only: no routed messages, and no reports about the end of other nodes' actors.
///   It sends only to actors that were introduced to it: published actors, and actors that a message to it named.
///   It sends only members' messages (accepted_messages.hpp), well formed, and they name only actors of its own.
///   It answers each request once, and nothing else.
///
/// The receiving actors check the values in the messages. Thread rule: CAF's I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/control/accepted_messages.hpp"
#include "actors/control/frame_guard.hpp"
#include "actors/control/peers.hpp"

namespace troupe::actors {

class Conversation {
 public:
  Conversation(security::TlsSide side, std::shared_ptr<ControlPeers> peers, std::string certificate);

  /// Takes the next received bytes. Returns the violation, or nothing. Do not call it after a violation.
  [[nodiscard]] std::optional<std::string_view> received(std::span<const char> bytes);
  /// Takes the next sent bytes.
  void sent(std::span<const char> bytes);
  /// The peer's handshake is complete.
  [[nodiscard]] bool greeted() const noexcept { return guard_.greeted(); }

 private:
  using Violation = std::optional<std::string_view>;
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
      return header.size() == FrameGuard::kHeaderBytes && payload.size() == length();
    }
    [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t size) const;
  };
  /// Adds `bytes` to `frame` and calls `whole` for each complete frame. A violation that `whole` returns ends the call and is returned.
  static Violation collect(Frame& frame, std::span<const char> bytes, const std::function<Violation()>& whole);

  Violation judge();
  Violation handshake();
  Violation message();
  Violation monitor(bool down);
  [[nodiscard]] bool knows(caf::actor_id actor) const;
  void note();

  FrameGuard guard_;
  const std::shared_ptr<ControlPeers> peers_;
  const std::string certificate_;
  std::shared_ptr<ControlPeer> peer_;  // from its handshake on
  std::string node_;                   // the peer's node id
  Frame in_;
  Frame out_;
};

}  // namespace troupe::actors
