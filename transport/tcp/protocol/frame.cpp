#include "transport/tcp/protocol/frame.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "transport/common/wire_hash.hpp"

namespace troupe::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian: swap bytes here");

constexpr std::array<char, 3> kMagic{'T', 'r', 'p'};
constexpr std::size_t kHashed = kFrameBytes - sizeof(std::uint64_t);

template <class Number>
void put(FrameBytes& bytes, std::size_t at, Number value) noexcept {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class Number>
Number get(const std::byte* bytes, std::size_t at) noexcept {
  Number value;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}

/// The largest payload of a type; Errc::corrupt for an unknown type.
core::Result<std::size_t> most(std::uint8_t type) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::hello:
    case FrameType::welcome:
    case FrameType::refuse:
    case FrameType::bye: return kTextBytes;
    case FrameType::offer: return kEagerBytes;
    case FrameType::chunk: return kChunkBytes;
    case FrameType::ready:
    case FrameType::want:
    case FrameType::done:
    case FrameType::mismatch:
    case FrameType::withdraw:
    case FrameType::withdrawn:
    case FrameType::heartbeat: return 0;
  }
  return core::fail(core::Errc::corrupt, fmt::format("a frame of unknown type {}", type));
}

}  // namespace

FrameBytes encode(const Frame& frame) noexcept {
  FrameBytes bytes;
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(bytes, 3, frame.type);
  put(bytes, 4, frame.length);
  put(bytes, 8, frame.message);
  put(bytes, 16, frame.tag);
  put(bytes, 24, frame.size);
  put(bytes, 32, frame.payload_hash);
  put(bytes, 40, frame.ack);
  put(bytes, kHashed, wire_hash({bytes.data(), kHashed}));
  return bytes;
}

core::Result<Frame> decode(const std::byte* bytes) {
  if (std::memcmp(bytes, kMagic.data(), kMagic.size()) != 0)
    return core::fail(core::Errc::corrupt, "bytes that are no frame of ours");
  if (get<std::uint64_t>(bytes, kHashed) != wire_hash({bytes, kHashed}))
    return core::fail(core::Errc::corrupt, "a frame whose header was damaged on the way");
  const auto type = get<std::uint8_t>(bytes, 3);
  const auto length = get<std::uint32_t>(bytes, 4);
  const auto limit = most(type);
  if (!limit) return tl::unexpected(limit.error());
  if (length > *limit)
    return core::fail(
        core::Errc::corrupt,
        fmt::format("a frame of type {} that claims {} bytes; at most {} are allowed", type, length, *limit));
  return Frame{.type = static_cast<FrameType>(type),
               .length = length,
               .message = get<std::uint64_t>(bytes, 8),
               .tag = get<std::uint64_t>(bytes, 16),
               .size = get<std::uint64_t>(bytes, 24),
               .payload_hash = get<std::uint64_t>(bytes, 32),
               .ack = get<std::uint64_t>(bytes, 40)};
}

bool is_numbered(FrameType type) noexcept { return type >= FrameType::offer && type <= FrameType::withdrawn; }

bool ends_message(FrameType type) noexcept {
  return type == FrameType::done || type == FrameType::mismatch || type == FrameType::withdrawn;
}

}  // namespace troupe::transport
