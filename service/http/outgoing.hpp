/// The body of an answer, piece by piece. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "service/http/message.hpp"

namespace troupe::service {

[[nodiscard]] std::uint64_t length_of(const Response& response);  // of the body, bytes

/// Bytes of `text` that the socket takes without waiting; 0 also after an error, which the next write meets.
[[nodiscard]] std::size_t send_now(int socket, std::string_view text) noexcept;

class Outgoing {
 public:
  Outgoing() = default;  // no body
  explicit Outgoing(Response response) : response_(std::move(response)) {}

  /// The next piece, valid until the next call; empty: the end; nothing: the file is shorter than it was, or cannot be read.
  [[nodiscard]] std::optional<std::string_view> next();

 private:
  Response response_;
  std::uint64_t sent_ = 0;
  std::string buffer_;
};

}  // namespace troupe::service
