/// A connection that was refused, as a log is told of it. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe::transport {

/// Refused before it reached any operation.
struct Refusal {
  std::string from;  // "192.0.2.7:51234"
  std::string why;   // "it sent no certificate"; printable, short
};

/// A peer's bytes as text that is safe to show: '?' for what is not printable ASCII, and at most 256 characters.
[[nodiscard]] std::string printable_text(std::span<const std::byte> bytes);

}  // namespace troupe::transport
