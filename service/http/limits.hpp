/// What one client may use. Plain values.
#pragma once

#include <chrono>
#include <cstddef>

namespace troupe::service {

struct Limits {
  std::size_t header_bytes = std::size_t{16} << 10;  // more: 431
  std::size_t body_bytes = std::size_t{1} << 20;     // more: 413
  std::size_t connections = 1024;                    // in all; more: 503
  std::size_t connections_per_address = 512;         // more: 429
  double requests_per_s = 200;                       // of one address, in the long run; more: 429
  double burst = 600;                                // requests
  std::chrono::milliseconds header_time{10'000};     // from the connection's begin to the first request's last header
  std::chrono::milliseconds idle_time{60'000};       // the same for later requests
  std::chrono::milliseconds body_time{30'000};
  std::chrono::milliseconds answer_time{30'000};    // of a handler; later: 503
  std::chrono::milliseconds write_time{30'000};     // until a client has taken a piece of an answer
  std::chrono::milliseconds comment_every{15'000};  // between comments on a stream of events without events
};

}  // namespace troupe::service
