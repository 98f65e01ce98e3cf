/// Checks the headers of CAF's protocol (BASP) as they arrive and reports when the connection must end. CAF 0.17 does not check them: a
/// handshake without payload ends the process, and a length of 4 GiB allocates 4 GiB. Thread rule: a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/net/tls_connection.hpp"

namespace troupe::actors {

class FrameGuard {
 public:
  static constexpr std::size_t kHeaderBytes = 32;
  static constexpr std::size_t kHandshakeBytes = std::size_t{64} << 10;  // node, applications and an actor's interface
  /// Far more than members send (a run's configuration, the journal records of 100 ms). 10 Mbit/s carry it in 3.4 s. Only a whole
  /// message is a sign of life, and a peer is lost after 5 s without one.
  static constexpr std::size_t kMessageBytes = std::size_t{4} << 20;

  explicit FrameGuard(security::TlsSide side) noexcept : side_(side) {}

  /// Takes the next received bytes. Returns the violation, or nothing. Do not call it after a violation.
  [[nodiscard]] std::optional<std::string_view> watch(std::span<const char> bytes);
  /// The peer's handshake is complete.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }

 private:
  [[nodiscard]] std::optional<std::string_view> judge();
  [[nodiscard]] bool same_client(std::span<const char> part);

  security::TlsSide side_;
  bool begun_ = false;
  bool greeted_ = false;
  std::array<char, kHeaderBytes> header_{};
  std::size_t have_ = 0;      // bytes of the header so far
  std::size_t payload_ = 0;   // bytes of the payload still to come
  std::string client_{};      // payload of the client's first handshake: its node id
  std::size_t repeated_ = 0;  // bytes compared in a later handshake
  bool introducing_ = false;  // the payload belongs to a client handshake
};

}  // namespace troupe::actors
