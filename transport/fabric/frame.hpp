/// The frames between FabricEndpoints, all in one layout: a head of 72 bytes, then a body that depends on the kind. Both hosts must
/// have the same byte order (the magic number rejects a frame of the other). Head and body have a wire_hash() each, so the head of
/// a frame with a damaged body is still valid. Thread rule: pure.
///
///     hello     from: this link; to: the peer's link as far as known; operation: hash of the address called; tag: hash of
///               its own address; size: its host_number(); body: own address, secret
///     goodbye   from, to, tag: as hello; body: own address, reason
///     offer     operation: the sender's, tag, size: of the message; body: the message if it is short
///     accept    operation: the sender's, tag: the channel that its memory waits under; size: the receiver's number for it
///     sum       operation: the receiver's number, tag: wire_hash() of the message, sent during the transfer
///     done      operation: the sender's, tag: 0, or 1 for another length; size: that of the receive
///     withdraw, withdrawn   operation: the sender's; withdraw also tag: of the message
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

enum class FrameKind : std::uint32_t { hello, goodbye, offer, accept, sum, done, withdraw, withdrawn };
inline constexpr std::uint32_t kFrameKinds = 8;

struct FrameHead {
  FrameKind kind = FrameKind::hello;
  std::uint64_t to = 0;    // the receiver's link
  std::uint64_t from = 0;  // the sender's
  std::uint64_t operation = 0;
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t number = 0;  // counts the frames of an established link from 1, to detect a missing one
};

struct FabricFrame {
  FrameHead head;
  std::span<const std::byte> body;  // in the memory that was parsed
  /// The damaged parts. Single fields of a damaged head may be right, but use them only to guess the link.
  bool head_damaged = false;
  bool body_damaged = false;
};

/// A message up to this size is in its offer.
inline constexpr std::size_t kShortMessage = 4 << 10;

[[nodiscard]] std::vector<std::byte> encode(const FrameHead& head, std::span<const std::byte> body = {});
/// Nothing if the bytes are not a frame: too short, or an undamaged head with invalid fields.
[[nodiscard]] std::optional<FabricFrame> parse(std::span<const std::byte> bytes) noexcept;

/// Two texts in one body. Nothing for an invalid body.
[[nodiscard]] std::vector<std::byte> encode(std::string_view first, std::string_view second);
[[nodiscard]] std::optional<std::pair<std::string, std::string>> parse_texts(std::span<const std::byte> body);

}  // namespace troupe::transport
