/// Requests to `troupe serve` (docs/formats/service.md) over HTTP/1.1, with TLS for https. Every wait has a deadline, and ends at most 50 ms
/// after a request to stop. Blocks the calling thread; one thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "apps/client/event_text.hpp"
#include "apps/client/service_address.hpp"

namespace troupe::apps {

struct ClientLimits {
  std::chrono::milliseconds connect{10'000};        // for a connection with its TLS
  std::chrono::milliseconds answer{40'000};         // until an answer begins; between two pieces of it
  std::chrono::milliseconds silence{45'000};        // of a stream of events: the service says something every 15 s
  std::size_t most_bytes = std::size_t{256} << 20;  // of an answer
};

/// Whether another try may succeed: a lost connection, a service that restarts or is busy.
[[nodiscard]] bool may_pass(const core::Error& error) noexcept;

class ServiceClient {
 public:
  ServiceClient(ServiceAddress address, std::stop_token stop, const ClientLimits& limits = {});
  ~ServiceClient();
  ServiceClient(const ServiceClient&) = delete;
  ServiceClient& operator=(const ServiceClient&) = delete;

  /// GET `path`, such as "/api/v1/runs". The connection is kept for the next one. Errc::config: the service refuses (401, 403: the token;
  /// 404: there is no such thing), an unknown host, a certificate that cannot be trusted; data: the answer is no HTTP or no JSON; peer_lost
  /// and timeout: may_pass(); interrupted.
  [[nodiscard]] core::Result<nlohmann::ordered_json> get(std::string_view path);

  /// The events of a stream, from behind the one of `last_id` on (empty: as the path says). Returns when the service ends the stream, which
  /// is an Error that may pass, or as get(). `last_id` follows.
  using OnEvent = std::function<void(const ServerEvent&)>;
  [[nodiscard]] core::Result<void> follow(std::string_view path, std::string& last_id, const OnEvent& on_event);

 private:
  class Connection;
  ServiceAddress address_;
  std::stop_token stop_;
  ClientLimits limits_;
  std::unique_ptr<Connection> connection_;  // null: none is open
};

/// A path segment with percent-encoding: "grid%2Frun".
[[nodiscard]] std::string encoded_segment(std::string_view text);

}  // namespace troupe::apps
