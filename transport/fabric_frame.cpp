#include "transport/fabric_frame.hpp"

#include <cstring>

namespace troupe::transport {
namespace {

constexpr std::uint32_t kMagic = 0x31465254;  // "TRF1"

struct Layout {
  std::uint32_t magic, kind;
  std::uint64_t to, from, operation, tag, size;
};
static_assert(sizeof(Layout) == 48);

}  // namespace

std::vector<std::byte> encode(const FrameHead& head, std::span<const std::byte> body) {
  const Layout layout{kMagic,   static_cast<std::uint32_t>(head.kind), head.to, head.from, head.operation, head.tag,
                      head.size};
  std::vector<std::byte> bytes(sizeof(Layout) + body.size());
  std::memcpy(bytes.data(), &layout, sizeof(Layout));
  if (!body.empty()) std::memcpy(bytes.data() + sizeof(Layout), body.data(), body.size());
  return bytes;
}

std::optional<Frame> parse(std::span<const std::byte> bytes) noexcept {
  Layout layout{};
  if (bytes.size() < sizeof(Layout)) return std::nullopt;
  std::memcpy(&layout, bytes.data(), sizeof(Layout));
  if (layout.magic != kMagic || layout.kind >= kFrameKinds) return std::nullopt;
  const Frame frame{
      {static_cast<FrameKind>(layout.kind), layout.to, layout.from, layout.operation, layout.tag, layout.size},
      bytes.subspan(sizeof(Layout))};
  const bool is_short = frame.head.kind == FrameKind::offer && layout.size <= kShortMessage;
  if (frame.head.kind == FrameKind::offer && frame.body.size() != (is_short ? layout.size : 0)) return std::nullopt;
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

std::uint64_t checksum(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace troupe::transport
