/// What the tcp endpoint is told beside what every endpoint is told. Thread rule: plain values.
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
  std::string advertise{};                              // the host that address() names; empty: the one in `listen`
  security::TlsFiles tls{};                             // all or none; none: plain TCP, on loopback
  core::Duration heartbeat = std::chrono::seconds{1};   // a peer hears something at least so often; peers agree
  core::Duration lost_after = std::chrono::seconds{5};  // a peer that is silent so long is lost, with a connection or
                                                        // while a broken one is mended; a dialogue that does not get
                                                        // ahead for so long while connecting is given up
  std::size_t max_strangers = 64;  // connections that have not said who they are; then the oldest goes
  std::function<void(const Refusal&)> on_refused{};  // for a log, at most RefusalReporter::kPerSecond and one; from
                                                     // any thread, one at a time: must not block
};

}  // namespace troupe::transport
