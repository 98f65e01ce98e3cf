/// Inside of tcp_meeting: what its three sources share. Thread rule: the I/O thread only.
#pragma once

#include <memory>
#include <string>

#include "transport/tcp/lookup.hpp"
#include "transport/tcp/handshake.hpp"

namespace troupe::transport {

/// One who has called this member.
struct TcpMeeting::Visitor {
  std::shared_ptr<TcpCall> call;
  std::string from;  // "192.0.2.7:51234"
  Hello hello;       // once introduced
  bool crowded_out = false;
  WantedPtr wanted;  // who takes this call: it was welcomed
};

/// One whom this member wants to meet, or has met. Not among wanted_ any more: over.
struct TcpMeeting::Wanted {
  Peer peer{};
  TcpAddress remote;
  TcpEndpoints endpoints{};           // where a call got through: no name server is needed to mend a connection
  std::string text;                   // of remote
  SessionToken token;                 // this member's
  SessionToken peer_token{};          // once known
  bool began = false;                 // both have met, at least once
  bool connected = false;             // and are, as far as is known
  std::uint64_t connection = 0;       // the latest that was agreed upon
  std::shared_ptr<TcpCall> dialling;  // this member's call; also while it pauses before the next
  bool pausing = false;
  VisitorPtr adopted;  // the other's call, once welcomed
};

}  // namespace troupe::transport
