/// Follows a stream of events of a service over lost connections: each is made again, later and later, from behind the last event. Blocks
/// the calling thread.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "apps/client/service_client.hpp"

namespace troupe::apps {

/// Waits so long, or until `stop`.
void pause_for(std::chrono::milliseconds time, const std::stop_token& stop);

struct FollowOptions {
  ServiceClient::OnEvent on_event;
  /// A connection was lost; it is tried again in so long. Null: not called.
  std::function<void(const core::Error&, std::chrono::milliseconds)> on_lost{};
  /// Before each connection, also the first one; an Error that may_pass() is as a lost connection. Null: not called.
  std::function<core::Result<void>()> before{};
  /// So long without a connection ends it; 0: never.
  std::chrono::milliseconds patience{0};
  std::chrono::milliseconds first_pause{500}, longest_pause{10'000};
};

/// Returns when `stop` is requested; or an Error that will not pass, or lasts longer than the patience. `last_id` follows.
[[nodiscard]] core::Result<void> follow_events(ServiceClient& client, const std::string& path, std::string& last_id,
                                               const FollowOptions& options, const std::stop_token& stop);

}  // namespace troupe::apps
