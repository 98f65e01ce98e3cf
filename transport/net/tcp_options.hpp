/// Options of the tcp endpoint beyond those of every endpoint. Thread rule: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "core/clock.hpp"
#include "transport/net/refusal.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::transport {

struct TcpOptions {
  std::string listen = "127.0.0.1:0";                   // host:port; port 0: any free one. Off loopback only with `tls`
  std::string advertise{};                              // the host in address(); empty: the host of `listen`
  security::TlsFiles tls{};                             // all files or none; none: plain TCP, on loopback
  core::Duration heartbeat = std::chrono::seconds{1};   // the longest time without data to a peer; peers agree
  core::Duration lost_after = std::chrono::seconds{5};  // a peer that is silent for so long is lost, connected or
                                                        // during the repair of a broken connection; a handshake
                                                        // without progress for so long is given up
  std::size_t max_pending = 64;                         // pending connections; beyond this number the oldest is closed
  std::function<void(const RefusedConnection&)>
      on_refused{};  // log hook, called at most RefusalReporter::kPerSecond + 1
                     // times a second, by any thread, one at a time: must not block
};

}  // namespace troupe::transport
