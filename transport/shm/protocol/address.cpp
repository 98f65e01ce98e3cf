#include "transport/shm/protocol/address.hpp"

#include <sys/random.h>

#include <cerrno>
#include <charconv>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr std::string_view kScheme = "shm:";
constexpr std::string_view kArena = "arena/";
constexpr std::size_t kHexDigits = 2 * sizeof(ShmToken);

std::string hex(const ShmToken& token) {
  std::string text;
  for (const std::byte b : token) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::optional<ShmToken> from_hex(std::string_view text) {
  if (text.size() != kHexDigits) return std::nullopt;
  ShmToken token;
  for (std::size_t i = 0; i < token.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc{} || end != digits + 2) return std::nullopt;
    token[i] = static_cast<std::byte>(value);
  }
  return token;
}

}  // namespace

std::optional<ShmAddress> ShmAddress::parse(std::string_view text) {
  // shm: id . secret / name
  if (!text.starts_with(kScheme) || text.size() < kScheme.size() + 2 * kHexDigits + 2) return std::nullopt;
  text.remove_prefix(kScheme.size());
  if (text[kHexDigits] != '.' || text[2 * kHexDigits + 1] != '/') return std::nullopt;
  const auto id = from_hex(text.substr(0, kHexDigits));
  const auto secret = from_hex(text.substr(kHexDigits + 1, kHexDigits));
  if (!id || !secret) return std::nullopt;
  return ShmAddress{*id, *secret, std::string(text.substr(2 * kHexDigits + 2))};
}

std::string ShmAddress::text() const { return fmt::format("{}{}.{}/{}", kScheme, hex(id), hex(secret), name); }

std::string ShmAddress::label() const { return fmt::format("{}{}/{}", kScheme, hex(id).substr(0, 8), name); }

std::string ShmAddress::socket_name() const { return "troupe-" + hex(id); }

std::optional<ShmArenaKey> ShmArenaKey::parse(std::string_view text) {
  const auto owner = ShmAddress::parse(text);
  if (!owner || !owner->name.starts_with(kArena)) return std::nullopt;
  const std::string_view digits = std::string_view(owner->name).substr(kArena.size());
  ShmArenaKey key{{owner->id, owner->secret, {}}};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), key.number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return key;
}

std::string ShmArenaKey::text() const {
  return ShmAddress{owner.id, owner.secret, fmt::format("{}{}", kArena, number)}.text();
}

core::Result<ShmToken> random_shm_token() {
  ShmToken token;
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    return tl::unexpected(core::from_errno(errno, "draw", "the secret of an shm endpoint"));
  return token;
}

bool same_secret(const ShmToken& a, const ShmToken& b) noexcept {
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace troupe::transport
