#include "actors/control/frame_guard.hpp"

#include <algorithm>

#include <caf/io/basp/header.hpp>

namespace troupe::actors {

static_assert(FrameGuard::kHeaderBytes == caf::io::basp::header_size);

namespace {

constexpr std::string_view kAnotherNode = "its second handshake names another node than its first";

}  // namespace

/// Keeps the first handshake's payload, and compares a later one with it.
bool FrameGuard::same_client(std::span<const char> part) {
  const std::string_view text(part.data(), part.size());
  if (!greeted_) {
    client_ += text;
    return true;
  }
  const bool same = std::string_view(client_).substr(repeated_, text.size()) == text;
  repeated_ += text.size();
  return same;
}

std::optional<std::string_view> FrameGuard::judge() {
  using caf::io::basp::message_type;
  const auto byte = [this](std::size_t at) { return static_cast<std::uint8_t>(header_[at]); };
  const auto type = static_cast<message_type>(byte(0));
  for (std::size_t i = 4; i < 8; ++i) payload_ = payload_ << 8 | byte(i);
  const auto own =
      side_ == security::TlsSide::accepted ? message_type::client_handshake : message_type::server_handshake;
  // A TLS record begins with its type and version 3.x.
  if (!begun_ && byte(0) >= 0x14 && byte(0) <= 0x17 && byte(1) == 3) return "it speaks TLS";
  if (!begun_ && type != own) return "it does not speak CAF's protocol";
  switch (type) {
    case message_type::server_handshake:
    case message_type::client_handshake:
      // A client selects one of two connections by a second handshake; a server has no reason for a second one.
      if (type != own || (begun_ && type == message_type::server_handshake)) return "invalid handshake";
      if (payload_ == 0 || payload_ > kHandshakeBytes) return "invalid handshake length";
      if (greeted_ && payload_ != client_.size()) return kAnotherNode;
      introducing_ = type == message_type::client_handshake;
      repeated_ = 0;
      break;
    case message_type::direct_message:
    case message_type::routed_message:
    case message_type::monitor_message:
    case message_type::down_message:
      if (payload_ == 0 || payload_ > kMessageBytes) return "invalid message length";
      break;
    case message_type::heartbeat:
      if (payload_ != 0) return "its heartbeat has a payload";
      break;
    default: return "it sends messages of an unknown kind";
  }
  begun_ = true;
  return std::nullopt;
}

std::optional<std::string_view> FrameGuard::watch(std::span<const char> bytes) {
  while (!bytes.empty()) {
    if (payload_ > 0) {
      const std::size_t skipped = std::min(payload_, bytes.size());
      if (introducing_ && !same_client(bytes.first(skipped))) return kAnotherNode;
      payload_ -= skipped;
      bytes = bytes.subspan(skipped);
      if (payload_ > 0) continue;
      greeted_ = true;
      introducing_ = false;
      continue;
    }
    const std::size_t taken = std::min(kHeaderBytes - have_, bytes.size());
    std::ranges::copy(bytes.first(taken), header_.begin() + static_cast<std::ptrdiff_t>(have_));
    have_ += taken;
    bytes = bytes.subspan(taken);
    // A TLS alert is shorter than a header: its first two bytes must suffice.
    if (have_ < kHeaderBytes && (begun_ || have_ < 2 || header_[0] < 0x14)) continue;
    have_ = 0;
    if (const auto wrong = judge()) return wrong;
  }
  return std::nullopt;
}

}  // namespace troupe::actors
