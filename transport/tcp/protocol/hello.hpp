/// What two tcp members tell each other when they meet: the payload of hello and of welcome. Thread rule: plain values.
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

/// How much a member takes from one peer that nobody has received yet.
struct Window {
  std::uint64_t messages = 0;     // announced and not ended; at least 1
  std::uint64_t eager_bytes = 0;  // payload of those that came with it
};

/// What follows from a credit: that many messages, and of their bytes at most 1 MiB unasked.
[[nodiscard]] Window window_of(const Credit& credit) noexcept;

struct Hello {
  std::uint32_t version = 0;
  std::uint64_t attempt = 0;     // counts the calls of the one that dials: a newer one replaces an older
  std::uint64_t connection = 0;  // of this session: 1 for the first
  SessionToken token;            // of who speaks, never empty
  SessionToken peer_token;       // what the other once gave as its own; empty: they have not met
  std::uint64_t received = 0;    // numbered frames of the other that the speaker holds whole
  Window window;
  std::string from;  // address text of who speaks
  std::string to;    // and of whom it believes it speaks to
};
inline constexpr std::uint32_t kTcpVersion = 2;

/// Why a member refuses a hello.
enum class RefuseCode : std::uint64_t {
  later = 1,     ///< has not connected to the caller yet, and will not keep the call: call again
  stranger = 2,  ///< is another member, or of another version: never call again
  over = 3,      ///< has given up the session that the caller wants to go on with, or never had it
};

[[nodiscard]] std::vector<std::byte> encode(const Hello& hello);
/// Errc::corrupt when it is none.
[[nodiscard]] core::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace troupe::transport
