#include "transport/fabric/frame.hpp"

#include <cstring>

#include "transport/common/wire_hash.hpp"

namespace troupe::transport {
namespace {

constexpr std::uint32_t kMagic = 0x32465254;  // "TRF2"

struct Layout {
  std::uint32_t magic, kind;
  std::uint64_t to, from, operation, tag, size, number, body_hash;
  std::uint64_t head_hash;  // of all fields before
};
static_assert(sizeof(Layout) == 72);

std::uint64_t head_hash(const Layout& layout) noexcept {
  return wire_hash(std::as_bytes(std::span(&layout, 1)).first(offsetof(Layout, head_hash)));
}

}  // namespace

std::vector<std::byte> encode(const FrameHead& head, std::span<const std::byte> body) {
  Layout layout{.magic = kMagic,
                .kind = static_cast<std::uint32_t>(head.kind),
                .to = head.to,
                .from = head.from,
                .operation = head.operation,
                .tag = head.tag,
                .size = head.size,
                .number = head.number,
                .body_hash = wire_hash(body),
                .head_hash = 0};
  layout.head_hash = head_hash(layout);
  std::vector<std::byte> bytes(sizeof(Layout) + body.size());
  std::memcpy(bytes.data(), &layout, sizeof(Layout));
  if (!body.empty()) std::memcpy(bytes.data() + sizeof(Layout), body.data(), body.size());
  return bytes;
}

std::optional<FabricFrame> parse(std::span<const std::byte> bytes) noexcept {
  Layout layout{};
  if (bytes.size() < sizeof(Layout)) return std::nullopt;
  std::memcpy(&layout, bytes.data(), sizeof(Layout));
  const FabricFrame frame{.head = {static_cast<FrameKind>(layout.kind), layout.to, layout.from, layout.operation,
                                   layout.tag, layout.size, layout.number},
                          .body = bytes.subspan(sizeof(Layout)),
                          .head_damaged = head_hash(layout) != layout.head_hash,
                          .body_damaged = wire_hash(bytes.subspan(sizeof(Layout))) != layout.body_hash};
  if (frame.head_damaged) return frame;
  if (layout.magic != kMagic || layout.kind >= kFrameKinds) return std::nullopt;
  const bool is_offer = frame.head.kind == FrameKind::offer;
  const std::size_t carried = layout.size <= kShortMessage ? layout.size : 0;
  if (is_offer && !frame.body_damaged && frame.body.size() != carried) return std::nullopt;
  return frame;
}

std::vector<std::byte> encode(std::string_view first, std::string_view second) {
  std::vector<std::byte> bytes(sizeof(std::uint32_t) + first.size() + second.size());
  const auto length = static_cast<std::uint32_t>(first.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  if (!first.empty()) std::memcpy(bytes.data() + sizeof length, first.data(), first.size());
  if (!second.empty()) std::memcpy(bytes.data() + sizeof length + first.size(), second.data(), second.size());
  return bytes;
}

std::optional<std::pair<std::string, std::string>> parse_texts(std::span<const std::byte> body) {
  std::uint32_t length = 0;
  if (body.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, body.data(), sizeof length);
  const auto texts = body.subspan(sizeof length);
  if (length > texts.size()) return std::nullopt;
  const auto* data = reinterpret_cast<const char*>(texts.data());
  return std::pair(std::string(data, length), std::string(data + length, texts.size() - length));
}

}  // namespace troupe::transport
