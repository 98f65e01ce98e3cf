/// The payload of hello and welcome: how two tcp members introduce themselves. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/tcp/protocol/token.hpp"

namespace troupe::transport {

/// Limit of what a member holds from one peer before it is received.
struct Window {
  std::uint64_t messages = 0;     // announced and not ended; at least 1
  std::uint64_t eager_bytes = 0;  // payload of the messages that were sent with their offer
};

/// The window for a credit: as many messages, and at most 1 MiB of their bytes sent with offers.
[[nodiscard]] Window window_of(const Credit& credit) noexcept;

struct Hello {
  std::uint32_t version = 0;
  std::uint64_t attempt = 0;     // counts the caller's calls: a newer one replaces an older
  std::uint64_t connection = 0;  // of this session: 1 for the first
  SessionToken token;            // the sender's, never empty
  SessionToken peer_token;       // the receiver's, from an earlier handshake; empty: none
  std::uint64_t received = 0;    // numbered frames of the receiver that the sender holds whole
  Window window;
  std::string from;  // the sender's address text
  std::string to;    // the address text of the member that it expects to reach
};
inline constexpr std::uint32_t kTcpVersion = 2;

/// The reason why a member refuses a hello.
enum class RefuseCode : std::uint64_t {
  later = 1,               ///< not connected to the caller yet, and does not keep the call: call again
  pending_connection = 2,  ///< the hello is wrong (member, version, certificate): do not call again
  over = 3,                ///< the session that the caller wants to continue has ended or never existed
};

[[nodiscard]] std::vector<std::byte> encode(const Hello& hello);
/// Errc::corrupt when the bytes are not a hello.
[[nodiscard]] core::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace troupe::transport
