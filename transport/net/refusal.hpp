/// A refused connection, as reported to a log. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe::transport {

/// The connection was refused before it reached any operation.
struct RefusedConnection {
  std::string from;  // the remote address, "192.0.2.7:51234"
  std::string why;   // the reason, "it sent no certificate"; printable, short
};

/// A peer's bytes as text that is safe to print: '?' for bytes that are not printable ASCII, at most 256 characters.
[[nodiscard]] std::string printable_text(std::span<const std::byte> bytes);

}  // namespace troupe::transport
