/// The frames of the tcp protocol: a stream of frames, each with a header of 56 bytes and `length` bytes of payload. Numbers are
/// little-endian.
///
///     0 magic "Trp" · 3 type · 4 length: 4 · 8 message: 8 · 16 tag: 8 · 24 size: 8 · 32 hash of the payload: 8
///     40 ack: 8 · 48 hash of the 48 bytes before: 8
///
/// Hashes are wire_hash(). A frame whose header hash is wrong is never handled. Payload is checked by its hash on plain connections
/// and in the handshake; otherwise TLS authenticates every byte.
///
/// Handshake (transport/tcp/handshake.hpp): hello, welcome, ready, refuse. Messages. The sender offers each message, in the order
/// of its sends. Up to kEagerBytes the payload follows at once if the receiver's window has room. Otherwise the receiver sends want
/// when it has a receive, and chunks follow in order, with chunks of other tags between them. The receiver ends a message by done,
/// mismatch or withdrawn (the answer to withdraw). Frames from offer to withdrawn are numbered from 1 in the order in which they
/// are first sent, for the life of the session. The number is not on the wire: a connection keeps the order, and the handshake
/// states where it begins. `ack` is the number of the peer's frames that the sender of `ack` holds whole, so the peer need not keep
/// those any more (unacked.hpp). Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.hpp"

namespace troupe::transport {

enum class FrameType : std::uint8_t {
  hello = 1,
  welcome = 2,
  ready = 3,
  refuse = 4,      ///< message: a RefuseCode; payload: why
  offer = 5,       ///< message, tag, size of the message; payload: nothing, or all of it
  want = 6,        ///< message
  chunk = 7,       ///< message, size: offset; payload: the bytes from there
  done = 8,        ///< message: the receive holds all bytes
  mismatch = 9,    ///< message, size: of the receive
  withdraw = 10,   ///< message, tag: the sender cancels it
  withdrawn = 11,  ///< message: no receive will take it
  heartbeat = 12,
  bye = 13,  ///< payload: why
};

struct Frame {
  FrameType type{};
  std::uint32_t length = 0;   // bytes of payload after the header
  std::uint64_t message = 0;  // the sender's number of the message
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t payload_hash = 0;
  std::uint64_t ack = 0;
};

inline constexpr std::size_t kFrameBytes = 56;
inline constexpr std::size_t kEagerBytes = std::size_t{16} << 10;
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kTextBytes = std::size_t{8} << 10;  // of hello, welcome, refuse and bye

/// Whether frames of this type are acknowledged, and sent again after a connection breaks.
[[nodiscard]] bool is_numbered(FrameType type) noexcept;
/// Whether it is the receiver's last frame about a message.
[[nodiscard]] bool ends_message(FrameType type) noexcept;

using FrameBytes = std::array<std::byte, kFrameBytes>;
[[nodiscard]] FrameBytes encode(const Frame& frame) noexcept;
/// Errc::corrupt: wrong magic, hash or type, or a length above the type's limit. Reads kFrameBytes at `bytes`.
[[nodiscard]] core::Result<Frame> decode(const std::byte* bytes);

}  // namespace troupe::transport
