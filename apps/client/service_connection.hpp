/// One connection to a service. Included by service_client.cpp alone. One thread.
#pragma once

#include "apps/client/service_client.hpp"
#include "apps/fetch/http_stream.hpp"

namespace troupe::apps {

class ServiceClient::Connection {
 public:
  using Failure = fetch::SystemError;
  using Parser = fetch::HttpStream::Parser;
  using OnPiece = std::function<void(std::string_view)>;

  Connection(const ServiceAddress& address, const ClientLimits& limits, std::stop_token stop);

  /// Resolves, connects and agrees on TLS.
  [[nodiscard]] core::Result<void> open();
  /// Sends the request and reads the head of its answer.
  [[nodiscard]] Failure ask(const std::string& target, std::string_view accept, std::string_view last_id,
                            Parser& parser);
  /// Reads the answer's body to its end. `silence`: the longest between two pieces.
  [[nodiscard]] Failure read(Parser& parser, std::chrono::milliseconds silence, const OnPiece& on_piece);
  /// What `error` means in the middle of `doing`.
  [[nodiscard]] core::Error explain(const Failure& error, std::string_view doing) const;

 private:
  [[nodiscard]] core::Result<void> secure();

  const ServiceAddress& address_;
  const ClientLimits& limits_;
  fetch::HttpStream stream_;
};

}  // namespace troupe::apps
