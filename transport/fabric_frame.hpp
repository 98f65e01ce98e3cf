/// The frames that FabricEndpoints send each other, all in one layout: a head of 48 bytes, then what the kind carries.
/// Both ends are hosts of one byte order (a frame of another is refused by its magic number). Pure.
///
///     hello     from: this link; to: the peer's link as far as known; operation: checksum of the address called;
///               body: own address, secret
///     goodbye   from, to: as hello; body: own address, why
///     offer     operation: the sender's, tag, size: of the message; body: the message if it is short
///     accept    operation: the sender's, tag: the channel that its memory waits under
///     done      operation: the sender's, tag: 0, or 1 for another length; size: what the receive expected
///     withdraw, withdrawn   operation: the sender's
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::transport {

enum class FrameKind : std::uint32_t { hello, goodbye, offer, accept, done, withdraw, withdrawn };
inline constexpr std::uint32_t kFrameKinds = 7;

struct FrameHead {
  FrameKind kind = FrameKind::hello;
  std::uint64_t to = 0;    // the receiver's link
  std::uint64_t from = 0;  // the sender's
  std::uint64_t operation = 0;
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
};

struct Frame {
  FrameHead head;
  std::span<const std::byte> body;  // in the memory that was parsed
};

/// A message up to this long travels in its offer.
inline constexpr std::size_t kShortMessage = 4 << 10;

[[nodiscard]] std::vector<std::byte> encode(const FrameHead& head, std::span<const std::byte> body = {});
/// Nothing for what is no frame of ours.
[[nodiscard]] std::optional<Frame> parse(std::span<const std::byte> bytes) noexcept;

/// Two texts in one body. Nothing for what is none.
[[nodiscard]] std::vector<std::byte> encode(std::string_view first, std::string_view second);
[[nodiscard]] std::optional<std::pair<std::string, std::string>> parse_texts(std::span<const std::byte> body);

/// FNV-1a: tells whether a hello reached the one that it was meant for.
[[nodiscard]] std::uint64_t checksum(std::string_view text) noexcept;

}  // namespace troupe::transport
