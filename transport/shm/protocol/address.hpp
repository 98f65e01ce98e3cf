/// Addresses and arena keys of the shm endpoint. Internal to shm.
///
///     shm:<id>.<secret>/<name>            id, secret: 16 random bytes each, in hex
///     shm:<id>.<secret>/arena/<number>    a key: the arena's owner, and which arena
///
/// The id names the socket, and every user of the host can list it. The secret grants access, so error messages do not contain it.
/// Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::transport {

using ShmToken = std::array<std::byte, 16>;

struct ShmAddress {
  ShmToken id{};
  ShmToken secret{};
  std::string name;

  /// Nothing when `text` is not an address of an shm endpoint.
  [[nodiscard]] static std::optional<ShmAddress> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  /// Without the secret, for error messages: "shm:<start of the id>/<name>".
  [[nodiscard]] std::string label() const;
  /// The socket's name in the abstract namespace.
  [[nodiscard]] std::string socket_name() const;
};

struct ShmArenaKey {
  ShmAddress owner;  // its name is empty
  std::uint64_t number = 0;
  [[nodiscard]] static std::optional<ShmArenaKey> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
};

/// Random bits of the kernel. Errc::io when it gives none.
[[nodiscard]] core::Result<ShmToken> random_shm_token();
/// Compares in constant time.
[[nodiscard]] bool same_secret(const ShmToken& a, const ShmToken& b) noexcept;

}  // namespace troupe::transport
