/// Proves that a member is the one that began a session: 128 random bits. Each side makes a token for the session and gives it to
/// the other in the first handshake; no other peer receives it. Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>

namespace troupe::transport {

struct SessionToken {
  std::array<std::byte, 16> bytes{};
  [[nodiscard]] bool empty() const noexcept;
  /// Compares in constant time.
  bool operator==(const SessionToken& other) const noexcept;
};

[[nodiscard]] SessionToken new_session_token();

}  // namespace troupe::transport
