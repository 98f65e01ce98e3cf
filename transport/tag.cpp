#include "transport/tag.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr unsigned kRunShift = 56;
constexpr unsigned kExchangeShift = 32;
constexpr unsigned kKindShift = 28;
constexpr unsigned kShardShift = 16;
constexpr std::uint64_t kExchangeMask = (1u << 24) - 1;

const char* name(TagKind kind) noexcept {
  static constexpr const char* kNames[kTagKinds] = {"signal", "push", "pull", "scatter", "gather", "broadcast", "peer"};
  const auto index = static_cast<unsigned>(kind);
  return index < kTagKinds ? kNames[index] : "unknown kind";
}

}  // namespace

Tag make_tag(const TagFields& fields) {
  if (fields.shard > kMaxShard)
    throw std::out_of_range(fmt::format("tag: shard {} is above {}", fields.shard, kMaxShard));
  return Tag{std::uint64_t{fields.run} << kRunShift | (fields.exchange & kExchangeMask) << kExchangeShift |
             (static_cast<std::uint64_t>(fields.kind) & 0xf) << kKindShift |
             std::uint64_t{fields.shard} << kShardShift | fields.chunk};
}

TagFields fields_of(Tag tag) noexcept {
  const auto bits = static_cast<std::uint64_t>(tag);
  return {.run = static_cast<std::uint8_t>(bits >> kRunShift),
          .exchange = static_cast<std::uint32_t>(bits >> kExchangeShift & kExchangeMask),
          .kind = static_cast<TagKind>(bits >> kKindShift & 0xf),
          .shard = static_cast<std::uint16_t>(bits >> kShardShift & kMaxShard),
          .chunk = static_cast<std::uint16_t>(bits)};
}

std::string to_string(Tag tag) {
  const TagFields f = fields_of(tag);
  return fmt::format("{} of exchange {}, shard {}, chunk {} (run {})", name(f.kind), f.exchange, f.shard, f.chunk,
                     f.run);
}

}  // namespace troupe::transport
