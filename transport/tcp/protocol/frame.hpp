/// What tcp members say to each other: a stream of frames, each a header of 56 bytes and `length` bytes of payload.
/// Numbers are little-endian.
///
///     0 magic "Trp" · 3 type · 4 length: 4 · 8 message: 8 · 16 tag: 8 · 24 size: 8 · 32 hash of the payload: 8
///     40 ack: 8 · 48 hash of the 48 bytes before: 8
///
/// Hashes are wire_hash(). A frame whose header does not check is never acted upon; payload is hashed on plain
/// connections only, because TLS authenticates every byte.
///
/// Greeting (docs in transport/tcp/handshake.hpp): hello, welcome, ready, refuse.
/// Messages. The sender offers each, in the order of its sends: up to kEagerBytes the payload follows at once when the
/// receiver's window has room, else the receiver says want when a receive is there and chunks follow, in order, with
/// chunks of other tags between them. The receiver ends a message by done, mismatch or withdrawn, the answer to withdraw.
/// Frames from offer to withdrawn are numbered in the order in which they are first sent, from 1 for the life of the
/// session. The number is not on the wire: a connection keeps the order, and the greeting says where it begins. `ack`
/// says how many of the peer's its sender holds whole, so that the peer need not keep them any more (unacked.hpp).
/// Thread rule: plain values.
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
  done = 8,        ///< message: the receive holds all of it
  mismatch = 9,    ///< message, size: of the receive
  withdraw = 10,   ///< message, tag: the sender cancelled it
  withdrawn = 11,  ///< message: nobody will receive it
  heartbeat = 12,
  bye = 13,  ///< payload: why
};

struct Frame {
  FrameType type{};
  std::uint32_t length = 0;   // bytes of payload after the header
  std::uint64_t message = 0;  // the sender's number of it
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t payload_hash = 0;
  std::uint64_t ack = 0;
};

inline constexpr std::size_t kFrameBytes = 56;
inline constexpr std::size_t kEagerBytes = std::size_t{16} << 10;
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kTextBytes = std::size_t{8} << 10;  // of hello, welcome, refuse and bye

/// Whether a frame of this type is sent again when a connection breaks, and acknowledged.
[[nodiscard]] bool is_numbered(FrameType type) noexcept;
/// Whether it is the receiver's last word about a message.
[[nodiscard]] bool ends_message(FrameType type) noexcept;

using FrameBytes = std::array<std::byte, kFrameBytes>;
[[nodiscard]] FrameBytes encode(const Frame& frame) noexcept;
/// Errc::corrupt for a wrong magic, hash or type, or a length that this type cannot have. kFrameBytes at `bytes`.
[[nodiscard]] core::Result<Frame> decode(const std::byte* bytes);

}  // namespace troupe::transport
