/// What a member proves with that it is the one a session began with: 128 random bits that each side makes for the
/// session and gives to the other in the first greeting, and that nobody else is told. Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>

namespace troupe::transport {

struct SessionToken {
  std::array<std::byte, 16> bytes{};
  [[nodiscard]] bool empty() const noexcept;
  /// In a time that does not depend on where they differ.
  bool operator==(const SessionToken& other) const noexcept;
};

[[nodiscard]] SessionToken new_session_token();

}  // namespace troupe::transport
