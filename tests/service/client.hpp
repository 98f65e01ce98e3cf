/// An HTTP client on a plain socket, so that tests can also say what no library would: and so that it shares no code with the service. One
/// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/file_descriptor.hpp"

namespace troupe::service {

struct Reply {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

class Client {
 public:
  /// Connects to 127.0.0.1. is_open(): whether it could.
  explicit Client(std::uint16_t port);
  [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }

  /// False: the other end does not take it.
  bool send(std::string_view bytes);
  /// The next answer. `has_body`: false for HEAD.
  [[nodiscard]] Reply receive(bool has_body = true);
  /// The text up to and with the next `end`; empty: the connection ended first.
  [[nodiscard]] std::string receive_until(std::string_view end);
  /// Whether the other end closes the connection before the patience of tests ends.
  [[nodiscard]] bool is_closed_by_peer();

 private:
  [[nodiscard]] bool more();

  core::FileDescriptor socket_;
  std::string unread_;
};

/// A request as text. `headers`: whole lines with their ends; a Host is added unless they have one.
[[nodiscard]] std::string request_text(std::string_view method, std::string_view target, std::string_view headers = {},
                                       std::string_view body = {});

}  // namespace troupe::service
