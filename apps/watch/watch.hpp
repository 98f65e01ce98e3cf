/// `troupe watch`: what happens in a service, as lines on standard output, over lost connections. Blocks until it is over.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "apps/client/service_client.hpp"

namespace troupe::apps {

struct WatchOptions {
  ServiceAddress address;
  bool json = false;                           // lines of JSON in place of text
  bool only_new = false;                       // of a run: not what it has written before
  std::chrono::milliseconds patience{};        // without a connection; 0: for ever
  std::function<void(std::string_view)> tell;  // of lost connections; whole lines. Any thread
};

/// Until `stop`: that is no error. Otherwise an Error of the service, one that lasts longer than the patience, or standard output's.
[[nodiscard]] core::Result<void> watch_service(const WatchOptions& options, const std::stop_token& stop);

/// Until the run ends: its error is that of this. Errc::peer_lost: its process is gone without an end; interrupted: `stop`; and as
/// watch_service().
[[nodiscard]] core::Result<void> watch_run(const WatchOptions& options, const std::string& run,
                                           const std::stop_token& stop);

}  // namespace troupe::apps
