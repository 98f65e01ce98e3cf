/// The types that handshake.cpp, connector.cpp and listener.cpp share. Internal to tcp. Thread rule: the I/O thread only.
#pragma once

#include <memory>
#include <string>

#include "transport/tcp/handshake.hpp"
#include "transport/tcp/lookup.hpp"

namespace troupe::transport {

/// A connection that was made to this member.
struct TcpHandshake::PendingConnection {
  std::shared_ptr<TcpCall> call;
  std::string from;  // "192.0.2.7:51234"
  Hello hello;       // valid once introduced
  bool crowded_out = false;
  WantedPtr wanted;  // the session that took this call and sent welcome
};

/// A peer that this member wants to connect to, or is connected to. The session has ended when it is no longer in wanted_.
struct TcpHandshake::Wanted {
  Peer peer{};
  TcpAddress remote;
  TcpEndpoints endpoints{};           // kept from a successful call: mending a connection needs no name server
  std::string text;                   // of remote
  SessionToken token;                 // this member's
  SessionToken peer_token{};          // once known
  bool began = false;                 // the two have been connected at least once
  bool connected = false;             // and are connected, as far as this member knows
  std::uint64_t connection = 0;       // the latest agreed number
  std::shared_ptr<TcpCall> dialling;  // this member's call, also in a pause before the next one
  bool pausing = false;
  PendingPtr taken;  // the peer's call, once welcomed
};

}  // namespace troupe::transport
