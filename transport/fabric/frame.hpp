/// The frames that FabricEndpoints send each other, all in one layout: a head of 72 bytes, then what the kind carries.
/// Both ends are hosts of one byte order (a frame of another is refused by its magic number). Head and body have a
/// wire_hash() each, so that a damaged body still has a head to be believed. Pure.
///
///     hello     from: this link; to: the peer's link as far as known; operation: hash of the address called; tag: hash of
///               its own address; size: its host_number(); body: own address, secret
///     goodbye   from, to, tag: as hello; body: own address, why
///     offer     operation: the sender's, tag, size: of the message; body: the message if it is short
///     accept    operation: the sender's, tag: the channel that its memory waits under; size: the receiver's number for it
///     sum       operation: the receiver's number, tag: wire_hash() of the message, while it is under way
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

enum class FrameKind : std::uint32_t { hello, goodbye, offer, accept, sum, done, withdraw, withdrawn };
inline constexpr std::uint32_t kFrameKinds = 8;

struct FrameHead {
  FrameKind kind = FrameKind::hello;
  std::uint64_t to = 0;    // the receiver's link
  std::uint64_t from = 0;  // the sender's
  std::uint64_t operation = 0;
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t number = 0;  // counts the frames of an established link from 1, so that one that is missing is missed
};

struct FabricFrame {
  FrameHead head;
  std::span<const std::byte> body;  // in the memory that was parsed
  /// What cannot be relied upon. Parts of a damaged head may be right: they are good for a guess and for nothing else.
  bool head_damaged = false;
  bool body_damaged = false;
};

/// A message up to this long travels in its offer.
inline constexpr std::size_t kShortMessage = 4 << 10;

[[nodiscard]] std::vector<std::byte> encode(const FrameHead& head, std::span<const std::byte> body = {});
/// Nothing for what is no frame of ours, however damaged: too short, or a good head that makes no sense.
[[nodiscard]] std::optional<FabricFrame> parse(std::span<const std::byte> bytes) noexcept;

/// Two texts in one body. Nothing for what is none.
[[nodiscard]] std::vector<std::byte> encode(std::string_view first, std::string_view second);
[[nodiscard]] std::optional<std::pair<std::string, std::string>> parse_texts(std::span<const std::byte> body);

}  // namespace troupe::transport
