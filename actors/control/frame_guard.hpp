/// Reads along what arrives in CAF's protocol (BASP) and says when to hang up: CAF 0.17 takes headers at their word, so
/// that a handshake without payload ends the process, and a length of 4 GiB is memory. Thread rule: a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/net/connection.hpp"

namespace troupe::actors {

class WireGuard {
 public:
  static constexpr std::size_t kHeaderBytes = 32;
  static constexpr std::size_t kHandshakeBytes = std::size_t{64} << 10;  // node, applications and an actor's interface
  /// Far more than members send (a run's configuration, the journal records of 100 ms), and so little that 10 Mbit/s carry it
  /// in 3.4 s: only a whole message is a sign of life, and after 5 s without one a peer is lost.
  static constexpr std::size_t kMessageBytes = std::size_t{4} << 20;

  explicit WireGuard(security::TlsSide side) noexcept : side_(side) {}

  /// What is wrong with the stream, these bytes included; nothing: all is well so far. Not to be called after that.
  [[nodiscard]] std::optional<std::string_view> watch(std::span<const char> bytes);
  /// The other end's handshake is there, in full.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }

 private:
  [[nodiscard]] std::optional<std::string_view> judge();
  [[nodiscard]] bool same_client(std::span<const char> part);

  security::TlsSide side_;
  bool begun_ = false;
  bool greeted_ = false;
  std::array<char, kHeaderBytes> header_{};
  std::size_t have_ = 0;      // of the header
  std::size_t payload_ = 0;   // that is to come
  std::string client_{};      // payload of the client's handshake: the node that it says it is
  std::size_t repeated_ = 0;  // of it, in the handshake that is being read
  bool introducing_ = false;  // the payload is a client handshake's
};

}  // namespace troupe::actors
