/// Identifies a message in 64 bits: a receive names a tag, and only a message with that tag matches.
///
///     63      56 55              32 31  28 27       16 15          0
///     [ run: 8 ][ exchange: 24     ][kind ][ shard: 12 ][ chunk: 16 ]
///
/// `run` is the membership epoch (a message sent under an old one matches nothing). `exchange` counts the exchanges of one worker
/// or group and wraps. `shard` is the server shard, bucket or fragment; `chunk` is a piece of it. The sender is not in the tag: a
/// receive names the peer beside it. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::transport {

enum class Tag : std::uint64_t {};

/// The purpose of the bytes. At most 16 values; part of the wire format: append, never renumber.
enum class TagKind : std::uint8_t {
  signal = 0,     ///< no payload: "my slice is written", "you may read"
  push = 1,       ///< worker to server
  pull = 2,       ///< server to worker
  scatter = 3,    ///< first phase of a reduction: parts to the member that sums them
  gather = 4,     ///< second phase: sums to all members
  broadcast = 5,  ///< root to all members
  peer = 6,       ///< worker to worker: gossip, pairs
};
inline constexpr int kTagKinds = 7;

struct TagFields {
  std::uint8_t run = 0;
  std::uint32_t exchange = 0;  // 24 bits: make_tag takes it modulo 2^24; only pending exchanges must differ
  TagKind kind = TagKind::signal;
  std::uint16_t shard = 0;  // below 2^12
  std::uint16_t chunk = 0;
  bool operator==(const TagFields&) const = default;
};

inline constexpr std::uint16_t kMaxShard = (1u << 12) - 1;

/// Throws std::out_of_range when `shard` exceeds kMaxShard.
[[nodiscard]] Tag make_tag(const TagFields& fields);
[[nodiscard]] TagFields fields_of(Tag tag) noexcept;
/// For error messages: "push of exchange 7, shard 2, chunk 0 (run 1)".
[[nodiscard]] std::string to_string(Tag tag);

}  // namespace troupe::transport
